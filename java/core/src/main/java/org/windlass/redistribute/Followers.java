// SPDX-License-Identifier: Apache-2.0
package org.windlass.redistribute;

import java.nio.charset.StandardCharsets;
import java.time.Duration;
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
import org.windlass.AbortedException;
import org.windlass.ClosedException;
import org.windlass.DeadlineExceededException;
import org.windlass.InvalidArgumentException;
import org.windlass.WindlassException;
import org.windlass.internal.Deadlines;

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
 * middle of a version costs the others nothing, and is lost at the deadline.
 */
public final class Followers implements AutoCloseable {
  private final Job job;
  private final String pair;
  private final Consumer<LinkBatch> binding;

  /** By their jobs' names. */
  private final Map<String, Linked> all = new TreeMap<>();

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
    Until until = new Until(Deadlines.nanos(deadline, WindlassException::of));
    admit(job.open(pair, until), until);
    while (linked() < count) {
      List<String> open;
      try {
        open = job.awaitOpen(pair, until);
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

  /** Links with the jobs of these names. */
  private void admit(List<String> names, Until until) {
    for (String name : names) {
      Linked follower = all.computeIfAbsent(name, any -> new Linked());
      if (follower.link != null) {
        follower.lose(new AbortedException("the job has come to meet again"));
      }
      // One that hangs leaves time for the others.
      Until meeting = new Until(Math.max(1, until.leftNs() / 2));
      try {
        follower.link = job.met(pair, Role.SOURCE, null, name, meeting);
        LinkBatch batch = follower.link.batch();
        binding.accept(batch);
        follower.transfer = batch.register(Duration.ofNanos(meeting.leftNs()));
        follower.lost = null;
      } catch (WindlassException e) {
        follower.lose(e);
        job.requireAlive();
      } finally {
        publish();
      }
    }
  }

  /**
   * Links with the followers that have come, then offers a version to all of them, until each has
   * it or the deadline has passed. Sources may be changed when it returns.
   *
   * @param version 0 or more, beyond those before
   * @return how each follower stands; one that is lost stays there until it comes again
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
    Until until = new Until(Deadlines.nanos(deadline, WindlassException::of));
    admit(job.open(pair, until), until);
    newest = version;
    sent++;
    Map<Linked, FutureTask<Void>> sends = new LinkedHashMap<>();
    all.forEach(
        (name, follower) -> {
          if (follower.link != null) {
            sends.put(follower, begin(name, follower.transfer, version, until));
          }
        });
    sends.forEach((follower, send) -> settle(follower, version, send));
    publish();
    job.requireAlive();
    return now;
  }

  private static FutureTask<Void> begin(
      String name, LinkTransfer transfer, long version, Until until) {
    Duration left = Duration.ofNanos(until.leftNs());
    FutureTask<Void> send = new FutureTask<>(() -> transfer.send(version, left), null);
    Thread thread = new Thread(null, send, "windlass-send-to-" + name, 0, false);
    thread.setDaemon(true);
    thread.start();
    return send;
  }

  /** Takes note of how a send has ended, which keeps to its deadline. */
  private void settle(Linked follower, long version, FutureTask<Void> send) {
    boolean interrupted = false;
    for (boolean isOver = false; !isOver; ) {
      try {
        send.get();
        follower.version = OptionalLong.of(version);
        follower.at = sent;
        isOver = true;
      } catch (ExecutionException e) {
        if (!(e.getCause() instanceof WindlassException failure)) {
          throw new IllegalStateException(e.getCause());
        }
        boolean isSkipped =
            failure instanceof DeadlineExceededException
                && follower.link.communicator().failure().isEmpty();
        if (!isSkipped) {
          follower.lose(failure);
        }
        isOver = true;
      } catch (InterruptedException e) {
        interrupted = true;
      }
    }
    if (interrupted) {
      Thread.currentThread().interrupt();
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
