// SPDX-License-Identifier: Apache-2.0
package org.windlass.job;

import java.time.Duration;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.Optional;
import java.util.OptionalLong;
import java.util.TreeMap;
import java.util.concurrent.CompletableFuture;
import java.util.function.BooleanSupplier;
import java.util.function.Consumer;
import java.util.function.Predicate;
import org.jspecify.annotations.Nullable;
import org.windlass.error.AbortedException;
import org.windlass.error.ClosedException;
import org.windlass.error.DeadlineExceededException;
import org.windlass.error.InvalidArgumentException;
import org.windlass.error.MismatchException;
import org.windlass.error.ResourceException;
import org.windlass.error.WindlassException;
import org.windlass.internal.Deadline;
import org.windlass.internal.Log;
import org.windlass.internal.rendezvous.LinkSearch;
import org.windlass.internal.store.Sockets;
import org.windlass.link.Link;
import org.windlass.link.LinkTransfer;
import org.windlass.link.LinkTransferBuilder;
import org.windlass.report.Report;

/**
 * Jobs that follow a source by one link name, each at its own pace. A target that joins is linked.
 * If a target is lost, it is unlinked; it is linked again when it returns. Each send offers a
 * version to all followers at once. A follower that does not request the version in time skips it.
 *
 * <pre>{@code
 * try (var job = Job.fromEnvironment("trainer");
 *     var followers = job.followers("policy", builder -> builder.add("w", shape, w, layout))) {
 *   for (long v = 1; train(); v++) {
 *     followers.send(v, ofSeconds(5)).forEach(System.out::println);
 *   }
 * }
 * }</pre>
 *
 * <p>Operations are collective over the source's ranks. One thread at a time may call them. Sends
 * to different followers do not wait for each other. If a follower hangs while it receives a
 * version, it is lost at the deadline. If one rank of the source loses a follower, all ranks of the
 * source lose it. While the store where jobs find each other is lost, linked followers still get
 * versions.
 */
public final class Followers implements AutoCloseable {
  // Limit of a send's wait for the store; it is also at most a fourth of the deadline. If the store
  // does not answer, later sends do not ask it, for a multiple of the time that was spent waiting.
  private static final Duration SEARCH_LIMIT = Duration.ofSeconds(1);
  private static final int SEARCH_PAUSE = 10;

  // Outcomes of a step for a follower on a rank. All ranks take the highest one.
  private static final long DONE = 0;
  private static final long SKIPPED = 1;
  private static final long LOST = 2;

  private final Job job;
  private final String linkName;
  private final Consumer<LinkTransferBuilder> binding;

  /** All followers, keyed by name. The map and the linked followers are the same on all ranks. */
  private final Map<String, Entry> all = new TreeMap<>();

  // why the last send could not search for targets
  private volatile @Nullable WindlassException searchFailure;
  private long searchAgainNs; // no rank searches before, as long as searchFailure is not null
  private long newest = -1;
  private long sentVersions;
  private volatile List<Follower> now = List.of();

  private static final class Entry {
    private final String name;
    private @Nullable Link link; // null while it is not linked
    private @Nullable LinkTransfer transfer;
    private @Nullable WindlassException lost;
    private OptionalLong version = OptionalLong.empty();
    private long versionsThen; // number of versions sent up to that one

    // Outcome of the last step, on this rank or on all ranks, and why this rank lost the follower.
    private long outcome;
    private @Nullable Throwable failure;

    Entry(String name) {
      this.name = name;
    }

    void set(long outcome, @Nullable Throwable failure) {
      this.outcome = outcome;
      this.failure = failure;
    }

    /** Returns the transfer over the link. It exists only while the follower is linked. */
    LinkTransfer transfer() {
      return Objects.requireNonNull(transfer);
    }

    /** Runs a step and sets the outcome. The step returns false if it skips the follower. */
    void run(BooleanSupplier step) {
      try {
        set(step.getAsBoolean() ? DONE : SKIPPED, null);
      } catch (Throwable e) {
        set(LOST, e);
      }
    }

    void check() {
      Link linked = Objects.requireNonNull(link);
      Report report = linked.communicator().report();
      WindlassException end = report.failure().orElse(null);
      for (Report.Rank rank : report.ranks()) {
        if (end == null && rank.closed()) {
          String operation = linked.operation("await");
          end =
              new AbortedException(
                  operation + ": rank " + rank.rank() + " has left", null, operation,
                  List.of(rank.rank()));
        }
      }
      set(end == null ? DONE : LOST, end);
    }

    void lose() {
      if (failure instanceof WindlassException known) {
        lose(known);
      } else if (failure != null) {
        lose(new AbortedException("a call for it failed: " + failure, failure));
      } else {
        lose(new AbortedException("another rank of this job has lost it; see what it says"));
      }
    }

    void lose(WindlassException why) {
      lost = why;
      version = OptionalLong.empty();
      versionsThen = 0;
      Link last = link;
      LinkTransfer open = transfer;
      try (last;
          open) {
        link = null;
        transfer = null;
      } catch (WindlassException e) {
        why.addSuppressed(e);
      }
    }

    Follower state(long sentVersions) {
      return new Follower(name, version, sentVersions - versionsThen, Optional.ofNullable(lost));
    }
  }

  Followers(Job job, String linkName, Consumer<LinkTransferBuilder> binding) {
    this.job = job;
    this.linkName = linkName;
    this.binding = Objects.requireNonNull(binding, "binding");
  }

  /**
   * Waits until at least {@code count} followers are linked.
   *
   * @return the state of each follower
   * @throws DeadlineExceededException if there are fewer at the deadline; these stay linked
   */
  public List<Follower> await(int count, Duration deadline) {
    Deadline until = Deadline.of(deadline);
    List<String> open = newcomers(until);
    while (true) {
      link(open, until);
      checkLinks(until);
      if (linked().size() >= count) {
        return now;
      }
      try {
        job.requireSameSearch(linkName, until);
        open = job.search(linkName, until, linkSearch -> linkSearch.awaitOpen(null));
      } catch (DeadlineExceededException e) {
        throw new DeadlineExceededException(
            "await of " + count + " followers of link '" + linkName + "': there are " + now, e);
      }
    }
  }

  private List<Entry> linked() {
    return all.values().stream().filter(each -> each.link != null).toList();
  }

  /** Unlinks the followers whose links have ended on a rank. Collective. */
  private void checkLinks(Deadline until) {
    List<Entry> linked = linked();
    linked.forEach(Entry::check);
    settle(linked, until);
    publish(linked);
  }

  /** Takes the followers' worst outcomes over the ranks, and unlinks lost ones. Collective. */
  private void settle(List<Entry> followers, Deadline until) {
    long[] outcomes = followers.stream().mapToLong(each -> each.outcome).toArray();
    long[] highest = outcomes.length == 0 ? outcomes : job.max(until, outcomes);
    for (int i = 0; i < highest.length; i++) {
      followers.get(i).outcome = highest[i];
      if (highest[i] == LOST) {
        followers.get(i).lose();
      }
    }
  }

  /**
   * Publishes all followers' state. Throws if a step of one of {@code settled} failed with an
   * {@link Error}.
   */
  private void publish(List<Entry> settled) {
    now = all.values().stream().map(each -> each.state(sentVersions)).toList();
    for (Entry each : settled) {
      if (each.failure instanceof Error error) {
        throw error;
      }
    }
  }

  /** Throws if this job's own ranks have failed. Releases the follower's link first. */
  private void requireAlive(Entry follower) {
    try {
      job.requireAlive();
    } catch (RuntimeException e) {
      follower.lose();
      throw e;
    }
  }

  /**
   * Returns the names of targets that wait for this source. Returns none if the store does not
   * answer in time.
   */
  private List<String> newcomers(Deadline until) {
    job.requireSameSearch(linkName, until);
    long startNs = System.nanoTime();
    if (searchFailure != null && job.max(until, startNs - searchAgainNs < 0 ? 1 : 0)[0] != 0) {
      return List.of();
    }
    long limitNs = Math.max(1, Math.min(until.leftNs() / 4, SEARCH_LIMIT.toNanos()));
    try {
      List<String> open = job.search(linkName, Deadline.of(limitNs), LinkSearch::open);
      searchFailure = null;
      return open;
    } catch (WindlassException e) {
      job.requireAlive();
      if (e instanceof MismatchException && linked().isEmpty()) {
        throw e; // another job is the source of the link
      }
      if (searchFailure == null && job.communicator().rank() == 0) {
        Log.warn(
            this + ": new followers can't be found at the moment: " + e.getMessage());
      }
      long nowNs = System.nanoTime();
      searchAgainNs = nowNs + SEARCH_PAUSE * (nowNs - startNs);
      searchFailure = e;
      return List.of();
    }
  }

  private void link(List<String> names, Deadline until) {
    for (String name : names) {
      Entry follower = all.computeIfAbsent(name, Entry::new);
      if (follower.link != null) {
        follower.lose(new AbortedException("the job has connected again"));
      }
      follower.set(DONE, null);
      try {
        // Half of the time stays for the other targets, in case that this target hangs.
        link(follower, Deadline.of(Math.max(1, until.leftNs() / 2)));
      } catch (RuntimeException | Error e) {
        follower.set(LOST, e);
        requireAlive(follower);
      }
      settle(List.of(follower), until);
      publish(List.of(follower));
    }
  }

  private void link(Entry follower, Deadline until) {
    Link link = job.connect(linkName, Role.SOURCE, null, follower.name, until);
    follower.link = link;
    follower.lost = null;
    LinkTransferBuilder builder = link.transferBuilder();
    try {
      binding.accept(builder);
    } catch (RuntimeException | Error e) {
      throw Link.failed(link.communicator(), link.operation("binding"), e, List.of());
    }
    follower.transfer = builder.register(until.left());
  }

  /**
   * Links new targets. Then offers a version to all followers, until each has received it or the
   * deadline has passed. The caller may change the tensors afterwards.
   *
   * @param version at least 0, and larger than in the previous call
   * @return the state of each follower. A lost follower stays in the list until it returns.
   * @throws MismatchException if no follower is linked and another job is the source of this link.
   *     It is thrown only if that job remains the source for longer than the store keeps the keys
   *     of an ended job.
   * @throws WindlassException if this job's own ranks fail. A failure of a follower is part of its
   *     state instead.
   */
  public List<Follower> send(long version, Duration deadline) {
    if (version <= newest) {
      throw new InvalidArgumentException(
          "send: version is " + version
              + (newest < 0 ? "; it must be 0 or more" : "; it must be beyond " + newest));
    }
    Deadline until = Deadline.of(deadline);
    link(newcomers(until), until);
    newest = version;
    sentVersions++;
    return toAll(
        until,
        each -> each.transfer().trySend(version, until.left()),
        each -> {
          each.version = OptionalLong.of(version);
          each.versionsThen = sentVersions;
        });
  }

  /**
   * Links the targets that have joined since the last send, and reports to all followers that no
   * more versions follow. Their receives return this as a result ({@link
   * LinkTransfer#finish(Duration)}). Nothing can be sent afterwards. If a follower does not get the
   * report by the deadline, its state has the failure.
   *
   * @return the state of each follower
   * @throws WindlassException if this job's own ranks fail
   */
  public List<Follower> finish(Duration deadline) {
    Deadline until = Deadline.of(deadline);
    link(newcomers(until), until);
    return toAll(
        until,
        each -> {
          each.transfer().finish(until.left());
          return true;
        },
        each -> {});
  }

  /**
   * Runs a step for all linked followers at once. Returns the state of each follower.
   *
   * @param done runs afterwards, for each follower whose step has returned true on all ranks
   */
  private List<Follower> toAll(Deadline until, Predicate<Entry> step, Consumer<Entry> done) {
    List<Entry> receivers = linked();
    receivers.stream()
        .map(each -> begin(each, () -> step.test(each)))
        .toList()
        .forEach(CompletableFuture::join);
    settle(receivers, until);
    receivers.stream().filter(each -> each.outcome == DONE).forEach(done);
    publish(receivers);
    job.requireAlive();
    return now;
  }

  private static CompletableFuture<Void> begin(Entry to, BooleanSupplier step) {
    try {
      return CompletableFuture.runAsync(
          () -> to.run(step),
          send -> Sockets.daemon(send, "windlass-send-to-" + to.name).start());
    } catch (OutOfMemoryError e) {
      to.set(LOST, new ResourceException("no thread for the send to " + to.name, e));
      return CompletableFuture.completedFuture(null);
    }
  }

  /** Returns the state of each follower after the last call. Thread-safe. */
  public List<Follower> now() {
    return now;
  }

  /**
   * Returns why the last send could not search for targets; empty if it could search. Sends that
   * can't search link no new followers.
   */
  public Optional<WindlassException> searchFailure() {
    return Optional.ofNullable(searchFailure);
  }

  /** Ends the links of all followers. Idempotent. */
  @Override
  public void close() {
    WindlassException left = new ClosedException("the source has left its followers");
    all.values().forEach(each -> each.lose(left));
    publish(List.of());
  }

  @Override
  public String toString() {
    return "Followers of link '" + linkName + "': " + now;
  }
}
