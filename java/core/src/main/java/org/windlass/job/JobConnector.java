// SPDX-License-Identifier: Apache-2.0
package org.windlass.job;

import java.time.Duration;
import java.util.List;
import java.util.Objects;
import java.util.function.Function;
import org.jspecify.annotations.Nullable;
import org.windlass.Communicator;
import org.windlass.CommunicatorOptions;
import org.windlass.error.AbortedException;
import org.windlass.error.ClosedException;
import org.windlass.error.DeadlineExceededException;
import org.windlass.error.PeerLostException;
import org.windlass.error.WindlassException;
import org.windlass.internal.Deadline;
import org.windlass.internal.Log;
import org.windlass.internal.Native;
import org.windlass.internal.rendezvous.Announcement;
import org.windlass.internal.rendezvous.Host;
import org.windlass.internal.rendezvous.LinkSearch;
import org.windlass.internal.rendezvous.OthersGoneException;
import org.windlass.internal.rendezvous.Start;
import org.windlass.internal.rendezvous.StoreAllGather;
import org.windlass.internal.store.Store;
import org.windlass.internal.transfer.Offer;
import org.windlass.internal.transfer.StepsMemo;
import org.windlass.layout.Layout;
import org.windlass.link.Link;
import org.windlass.link.LinkedJobs;
import org.windlass.plan.Plan;

/**
 * Connects a job to other jobs. Rank 0 finds the other job at the store. All ranks of both jobs
 * then join one communicator and make a link of it.
 */
final class JobConnector implements AutoCloseable {
  /** Version of the messages that jobs and their ranks exchange before they have connected. */
  private static final int PROTOCOL = 6;

  // Outcomes of an attempt to connect on a rank. All ranks of a job take the highest one.
  private static final long JOINED = 0;
  private static final long LOST = 1; // the store, the other job, or another rank of this job
  private static final long GONE = 2; // the other job gave up before it joined
  private static final long FAILED = 3;

  private final String name;
  private final JobRanks ranks;
  private final JobStore store;
  private final CommunicatorOptions options;
  private final Host host;
  private final StepsMemo memo = new StepsMemo();

  /** Other jobs that hold keys which this job needs. Only rank 0 uses this field. */
  LinkSearch.Holders holders = new LinkSearch.Holders();

  volatile boolean closed;
  private LinkSearch.@Nullable Match match; // on rank 0: the other job that was found last
  private volatile @Nullable Communicator joining; // of this job or of both, while they join

  JobConnector(
      String name, JobRanks ranks, JobStore store, CommunicatorOptions options, Host host) {
    this.name = name;
    this.ranks = ranks;
    this.store = store;
    this.options = options;
    this.host = host;
  }

  /**
   * Runs a search at the store on rank 0. If the store is lost, repeats the search at another
   * store.
   */
  <T> T atStore(
      String linkName, @Nullable Layout layout, Deadline until, Function<LinkSearch, T> search) {
    while (true) {
      try {
        Store reached = store.reach(until);
        Announcement own = announcement(layout);
        return search.apply(new LinkSearch(reached, linkName, own, until, holders));
      } catch (PeerLostException e) {
        if (until.isOver()) {
          throw e;
        }
      }
    }
  }

  private Announcement announcement(@Nullable Layout layout) {
    return new Announcement(
        versions(),
        name,
        store.instance(),
        ProcessHandle.current().pid(),
        ranks.size(),
        layout == null ? "" : layout.qualified(),
        new Start.Config(
            options.firstSequence(), options.cores(), options.blocks(),
            Deadline.nanos(options.deadline()), options.adjustThreads()),
        false);
  }

  /** Returns the other job that was found last. Only for rank 0. */
  private LinkSearch.Match match() {
    return Objects.requireNonNull(match);
  }

  static String versions() {
    return "windlass " + Native.wl_version() + ", ABI " + Native.wl_abi_version()
        + ", link protocol " + PROTOCOL + ", plan " + Plan.VERSION + ", offer " + Offer.FORMAT;
  }

  /**
   * Finds the other job and links with it. Collective. Returns null on all ranks if they should try
   * again, because the store was lost or the other job gave up.
   */
  @Nullable Link tryConnect(
      String linkName, Role role, @Nullable Layout layout, @Nullable String target,
      Deadline until) {
    Function<LinkSearch, LinkSearch.Match> search =
        linkSearch -> role == Role.SOURCE ? linkSearch.source(target) : linkSearch.target();
    Announcement other =
        ranks.fromRank0(
            until,
            in -> Announcement.of(in.readAllBytes(), versions()),
            () -> {
              LinkSearch.Match found = atStore(linkName, layout, until, search);
              match = found;
              return out -> out.write(found.other().toBytes());
            });
    Link link = null;
    Throwable failure = null;
    try {
      link = join(linkName, role, announcement(layout), other, until);
    } catch (RuntimeException | Error e) {
      failure = e;
    }
    // An interrupt has ended the call above. It must not end the calls below.
    boolean interrupted = Thread.interrupted();
    try {
      long worst =
          ranks.max(until, interrupted && failure != null ? FAILED : outcome(failure, until))[0];
      if (worst == JOINED && !closed) {
        return link;
      }
      Throwable own = failure;
      if (worst == JOINED) {
        failure = new ClosedException("the job was closed");
      } else if (worst != FAILED
          && ranks.testOnRank0(until, () -> mayRetry(linkName, target, worst, own, until))) {
        failure = null;
      } else if (failure == null) {
        failure =
            new AbortedException("another rank of job '" + name + "' has failed; see its output");
      }
    } catch (WindlassException e) {
      if (failure == null) {
        failure = e;
      } else {
        failure.addSuppressed(e);
      }
    } finally {
      if (interrupted) {
        Thread.currentThread().interrupt();
      }
    }
    if (link != null) {
      link.close();
      if (ranks.rank() == 0) {
        store.remove(match().own());
      }
    }
    if (failure instanceof Error error) {
      throw error;
    }
    if (failure != null) {
      throw (RuntimeException) failure;
    }
    return null;
  }

  /** On rank 0, returns whether to search again after the other job or the store was lost. */
  private boolean mayRetry(
      String linkName, @Nullable String target, long outcome, @Nullable Throwable failure,
      Deadline until) {
    if (outcome == LOST && store.isLost(until)) {
      return true;
    }
    if (target != null || (outcome == LOST && !store.hasGivenUp(match().theirs(), until))) {
      return false;
    }
    Log.warn(
        "job ''{0}'', link ''{1}'': {2} gave up before both had connected; waiting for another"
            + " job: {3}",
        name, linkName, match().other(),
        failure == null
            ? "another rank of this job saw it"
            : String.valueOf(failure.getMessage()));
    return true;
  }

  private static long outcome(@Nullable Throwable failure, Deadline until) {
    if (failure == null) {
      return JOINED;
    }
    if (failure.getCause() instanceof OthersGoneException) {
      return GONE;
    }
    // If this job still has time, the deadline of the other job has passed.
    boolean isOthersLate = failure instanceof DeadlineExceededException && !until.isOver();
    boolean isLost = failure instanceof PeerLostException || failure instanceof AbortedException;
    return isLost || isOthersLate ? LOST : FAILED;
  }

  private Link join(
      String linkName, Role role, Announcement own, Announcement other, Deadline until) {
    boolean sends = role == Role.SOURCE;
    Announcement source = sends ? own : other;
    Announcement target = sends ? other : own;
    String whose = " (" + ranks(0, source) + ", " + ranks(source.ranks(), target) + ")";
    int first = sends ? 0 : source.ranks();
    int size = source.ranks() + target.ranks();
    Link link = null;
    JobRanks side = null;
    try {
      side = ranks.copy(until);
      joining = side.communicator();
      StoreAllGather atStore =
          ranks.rank() == 0
              ? new StoreAllGather(
                  store.store().orElseThrow(), match().name(), size, match().theirs())
              : null;
      long handle =
          Start.join(
              side.allGather(first, atStore, until), List.of(first + ranks.rank()), size,
              source.options(), host, until.left())[0];
      Duration deadline = Duration.ofNanos(source.options().deadlineNs());
      Communicator both = Communicator.of(handle, deadline, "connect");
      joining = both;
      if (closed) {
        both.close();
      }
      LinkedJobs jobs =
          new LinkedJobs(
              whose, source.ranks(), source.arePythonRanks(), layout(source), layout(target));
      link = Link.between(linkName, jobs, both, side.communicator(), memo, until);
      return link;
    } catch (OthersGoneException e) {
      throw new PeerLostException(e.getMessage() + whose, e);
    } catch (WindlassException e) {
      throw WindlassException.of(
          e.code().number(), e.getMessage() + whose, e, e.operation(), e.faultyRanks());
    } finally {
      joining = null;
      // A linked target keeps its key, so that no other job of the same name takes the key.
      if (ranks.rank() == 0 && (sends || link == null)) {
        store.remove(match().own());
      }
      if (link == null && side != null) {
        side.close();
      }
    }
  }

  private static @Nullable Layout layout(Announcement job) {
    return job.layout().isEmpty() ? null : Layout.parse(job.layout());
  }

  private static String ranks(int first, Announcement job) {
    int last = first + job.ranks() - 1;
    return (first == last ? "rank " + first + " is" : "ranks " + first + " to " + last + " are")
        + " job '" + job.job() + "'";
  }

  @Override
  public void close() {
    Communicator both = joining;
    if (both != null) {
      both.close();
    }
  }
}
