// SPDX-License-Identifier: Apache-2.0
package org.windlass.redistribute;

import java.time.Duration;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.Optional;
import java.util.OptionalLong;
import java.util.TreeMap;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.FutureTask;
import java.util.function.Consumer;
import java.util.function.Supplier;
import org.windlass.AbortedException;
import org.windlass.ClosedException;
import org.windlass.DeadlineExceededException;
import org.windlass.InvalidArgumentException;
import org.windlass.MismatchException;
import org.windlass.Report;
import org.windlass.ResourceException;
import org.windlass.WindlassException;
import org.windlass.internal.Deadline;
import org.windlass.internal.rendezvous.Pairing;

/**
 * The jobs that follow a source by one pair, each at its own pace: a target that comes is linked
 * with, one that is lost is let go of, and comes back when it is started again. Each send offers a
 * version to all of them at one time; one that does not ask for it in time skips it.
 *
 * <pre>{@code
 * try (var job = Job.fromEnvironment("trainer");
 *     var followers = job.followers("policy", batch -> batch.add("w", shape, w, layout))) {
 *   for (long v = 1; train(); v++) {
 *     followers.send(v, ofSeconds(5)).forEach(System.out::println);
 *   }
 * }
 * }</pre>
 *
 * <p>Operations are collective over the source's ranks, and one thread at a time calls them. A send
 * to one follower runs on a thread of its own, and none waits for another: one that hangs in the
 * middle of a version costs the others nothing, and is lost at the deadline. One that is lost to a
 * rank of the source is lost to all of them. The store where jobs meet is needed by those alone who
 * come: while it is lost, or doesn't answer, versions go to those that are there.
 */
public final class Followers implements AutoCloseable {
  private static final System.Logger LOGGER = System.getLogger("org.windlass");

  /** The most that a send waits for the store, and a fourth of its deadline at most. */
  private static final Duration LONGEST_LOOK = Duration.ofSeconds(1);

  /** How much longer than it was waited for a store that gave no answer is left in peace. */
  private static final int REST = 10;

  /** What has become of a send to a follower, on one rank; the worst counts for all. */
  private static final long HAS = 0;

  private static final long SKIPPED = 1;
  private static final long LOST = 2;

  private final Job job;
  private final String pair;
  private final Consumer<LinkBatch> binding;

  /** By their jobs' names: the same on all ranks, and linked on all or on none. */
  private final Map<String, Linked> all = new TreeMap<>();

  /** Why the last send could not look for those that have come; null where it could. */
  private volatile WindlassException blind;

  /** On rank 0: when the store is to be asked again after {@link #blind}. */
  private long lookAgainNs;

  private long newest = -1;

  /** How many versions were sent. */
  private long sent;

  private volatile List<Follower> now = List.of();

  /** A follower, and the way to it. */
  private static final class Linked {
    /** Null where it is lost. */
    private Link link;

    private LinkTransfer transfer;
    private WindlassException lost;

    private OptionalLong version = OptionalLong.empty();

    /** How many versions had been sent with that one. */
    private long at;

    /** Why its link has ended, as far as this rank knows; null where it has not. */
    WindlassException end() {
      Report report = link.communicator().report();
      Optional<WindlassException> left =
          report.ranks().stream()
              .filter(Report.Rank::closed)
              .findFirst()
              .map(
                  rank ->
                      new AbortedException(
                          link.operation("await") + ": rank " + rank.rank() + " has left"));
      return report.failure().or(() -> left).orElse(null);
    }

    void lose(WindlassException why) {
      lost = why;
      version = OptionalLong.empty();
      at = 0;
      if (transfer != null) {
        transfer.close();
        transfer = null;
      }
      try {
        if (link != null) {
          link.close();
        }
      } catch (WindlassException e) {
        why.addSuppressed(e);
      }
      link = null;
    }

    /** {@link #lose}, for what this rank knows of it, if anything. */
    void loseAsOthers(WindlassException own) {
      lose(
          own != null
              ? own
              : new AbortedException("another rank of this job has lost it; see what it says"));
    }
  }

  Followers(Job job, String pair, Consumer<LinkBatch> binding) {
    this.job = job;
    this.pair = pair;
    this.binding = Objects.requireNonNull(binding, "binding");
  }

  /**
   * Waits until {@code count} followers are linked, or more.
   *
   * @return how each follower stands
   * @throws DeadlineExceededException if fewer are; those that are stay so
   */
  public List<Follower> await(int count, Duration deadline) {
    Until until = new Until(Deadline.nanos(deadline, WindlassException::of));
    admit(newcomers(until), until);
    for (letGo(until); linked() < count; letGo(until)) {
      List<String> open;
      try {
        job.agreeToLook(pair, until);
        open = job.look(pair, until, way -> Job.outliving(until, () -> way.get().awaitOpen()));
      } catch (DeadlineExceededException e) {
        throw new DeadlineExceededException(
            "await of " + count + " followers of pair '" + pair + "': there are " + now, e);
      }
      admit(open, until);
    }
    return now;
  }

  private long linked() {
    return all.values().stream().filter(each -> each.link != null).count();
  }

  /** Collective: lets go, on all ranks, of those whose links have ended on one. */
  private void letGo(Until until) {
    List<Linked> linked = all.values().stream().filter(each -> each.link != null).toList();
    List<WindlassException> ends = linked.stream().map(Linked::end).toList();
    if (linked.isEmpty()) {
      return;
    }
    long[] any = job.most(until, ends.stream().mapToLong(end -> end == null ? 0 : 1).toArray());
    for (int i = 0; i < any.length; i++) {
      if (any[i] != 0) {
        linked.get(i).loseAsOthers(ends.get(i));
      }
    }
    publish();
  }

  /** Those that have come; none where the store doesn't say so in a part of the time. */
  private List<String> newcomers(Until until) {
    job.agreeToLook(pair, until);
    Until look = new Until(Math.max(1, Math.min(until.leftNs() / 4, LONGEST_LOOK.toNanos())));
    try {
      List<String> open = job.look(pair, look, this::rested);
      blind = null;
      return open;
    } catch (WindlassException e) {
      job.requireAlive();
      if (e instanceof MismatchException && linked() == 0) {
        throw e; // another source has the pair, and this one nobody
      }
      if (blind == null && job.communicator().rank() == 0) {
        LOGGER.log(
            System.Logger.Level.WARNING,
            this + ": none that comes is seen for now: " + e.getMessage());
      }
      blind = e;
      return List.of();
    }
  }

  /** On rank 0: asks the store, unless that was in vain a moment ago. */
  private List<String> rested(Supplier<Pairing> way) {
    long startNs = System.nanoTime();
    if (blind != null && startNs - lookAgainNs < 0) {
      throw blind;
    }
    boolean isAnswered = false;
    try {
      List<String> open = way.get().open();
      isAnswered = true;
      return open;
    } finally {
      if (!isAnswered) {
        long nowNs = System.nanoTime();
        lookAgainNs = nowNs + REST * (nowNs - startNs);
      }
    }
  }

  /** Collective: links with the jobs of these names, on all ranks or on none. */
  private void admit(List<String> names, Until until) {
    for (String name : names) {
      Linked follower = all.computeIfAbsent(name, any -> new Linked());
      if (follower.link != null) {
        follower.lose(new AbortedException("the job has come to meet again"));
      }
      Throwable failure = null;
      try {
        // One that hangs leaves time for the others.
        link(follower, name, new Until(Math.max(1, until.leftNs() / 2)));
      } catch (RuntimeException | Error e) {
        failure = e;
        follower.lose(known(e));
        job.requireAlive();
      }
      boolean isLost = job.most(until, failure == null ? 0 : 1)[0] != 0;
      if (isLost && failure == null) {
        follower.loseAsOthers(null);
      }
      publish();
      if (failure instanceof Error error) {
        throw error;
      }
    }
  }

  private void link(Linked follower, String name, Until until) {
    Link link = job.met(pair, Role.SOURCE, null, name, until);
    follower.link = link;
    follower.lost = null;
    LinkBatch batch = link.batch();
    try {
      binding.accept(batch);
    } catch (RuntimeException | Error e) {
      throw Link.failed(link.communicator(), link.operation("binding"), e, List.of());
    }
    follower.transfer = batch.register(until.left());
  }

  /** {@code failure} as a follower tells it. */
  private static WindlassException known(Throwable failure) {
    return failure instanceof WindlassException known
        ? known
        : new AbortedException("a call for it failed: " + failure, failure);
  }

  /**
   * Links with the followers that have come, then offers a version to all of them, until each has
   * it or the deadline has passed. Sources may be changed when it returns.
   *
   * @param version 0 or more, beyond those before
   * @return how each follower stands; one that is lost stays there until it comes again
   * @throws MismatchException if none is linked, and another job has been the source of this pair
   *     since the first look, for longer than the store keeps the place of a job that has ended
   * @throws WindlassException where this job's own ranks can't go on; what becomes of a follower is
   *     said of it
   */
  public List<Follower> send(long version, Duration deadline) {
    if (version <= newest) {
      throw new InvalidArgumentException(
          "send: version is "
              + version
              + (newest < 0 ? "; it must be 0 or more" : "; it must be beyond " + newest));
    }
    Until until = new Until(Deadline.nanos(deadline, WindlassException::of));
    admit(newcomers(until), until);
    newest = version;
    sent++;
    Map<Linked, FutureTask<Void>> sends = new LinkedHashMap<>();
    all.forEach(
        (name, follower) -> {
          if (follower.link != null) {
            sends.put(follower, begin(name, follower.transfer, version, until));
          }
        });
    settle(sends, version, until);
    publish();
    job.requireAlive();
    return now;
  }

  private static FutureTask<Void> begin(
      String name, LinkTransfer transfer, long version, Until until) {
    Duration left = until.left();
    FutureTask<Void> send = new FutureTask<>(() -> transfer.send(version, left), null);
    Thread thread = new Thread(null, send, "windlass-send-to-" + name, 0, false);
    thread.setDaemon(true);
    try {
      thread.start();
    } catch (OutOfMemoryError e) {
      send =
          new FutureTask<>(
              () -> {
                throw new ResourceException("no thread for the send to " + name, e);
              });
      send.run();
    }
    return send;
  }

  /** Collective: takes note of how sends have ended, which keep to their deadline. */
  private void settle(Map<Linked, FutureTask<Void>> sends, long version, Until until) {
    List<Throwable> failures = new ArrayList<>();
    sends.values().forEach(send -> failures.add(failure(send)));
    long[] own = new long[failures.size()];
    int next = 0;
    for (Linked follower : sends.keySet()) {
      Throwable failure = failures.get(next);
      boolean isSkipped =
          failure instanceof DeadlineExceededException
              && follower.link.communicator().failure().isEmpty();
      own[next++] = failure == null ? HAS : isSkipped ? SKIPPED : LOST;
    }
    long[] all = own.length == 0 ? own : job.most(until, own);
    next = 0;
    for (Linked follower : sends.keySet()) {
      if (all[next] == HAS) {
        follower.version = OptionalLong.of(version);
        follower.at = sent;
      } else if (all[next] == LOST) {
        follower.loseAsOthers(own[next] == LOST ? known(failures.get(next)) : null);
      }
      next++;
    }
    for (Throwable failure : failures) {
      if (failure instanceof Error error) {
        throw error;
      }
    }
  }

  /** What a send has thrown, once it has ended; or null. */
  private static Throwable failure(FutureTask<Void> send) {
    boolean interrupted = false;
    try {
      while (true) {
        try {
          send.get();
          return null;
        } catch (ExecutionException e) {
          return e.getCause();
        } catch (InterruptedException e) {
          interrupted = true;
        }
      }
    } finally {
      if (interrupted) {
        Thread.currentThread().interrupt();
      }
    }
  }

  private void publish() {
    now =
        all.entrySet().stream()
            .map(
                each -> {
                  Linked follower = each.getValue();
                  return new Follower(
                      each.getKey(),
                      follower.version,
                      sent - follower.at,
                      Optional.ofNullable(follower.lost));
                })
            .toList();
  }

  /** How each follower stands, as of the last call; from any thread. */
  public List<Follower> now() {
    return now;
  }

  /**
   * Why the last send saw none that had come; empty where it looked. Until it does again, those
   * that are linked are all that there are.
   */
  public Optional<WindlassException> blind() {
    return Optional.ofNullable(blind);
  }

  /** Leaves all followers. Idempotent. */
  @Override
  public void close() {
    WindlassException left = new ClosedException("the source has left its followers");
    all.values().forEach(each -> each.lose(left));
    publish();
  }

  @Override
  public String toString() {
    return "Followers of pair '" + pair + "': " + now;
  }
}
