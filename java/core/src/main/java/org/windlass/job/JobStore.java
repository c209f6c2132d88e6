// SPDX-License-Identifier: Apache-2.0
package org.windlass.job;

import java.lang.ref.Cleaner;
import java.time.Duration;
import java.util.Map;
import java.util.Optional;
import java.util.UUID;
import org.jspecify.annotations.Nullable;
import org.windlass.error.ClosedException;
import org.windlass.error.DeadlineExceededException;
import org.windlass.error.PeerLostException;
import org.windlass.error.WindlassException;
import org.windlass.internal.Deadline;
import org.windlass.internal.Native;
import org.windlass.internal.memory.Leaks;
import org.windlass.internal.rendezvous.LinkRendezvous;
import org.windlass.internal.rendezvous.LinkSearch;
import org.windlass.internal.rendezvous.Presence;
import org.windlass.internal.store.Member;
import org.windlass.internal.store.Store;

/**
 * Connection of a job's rank 0 to the store where jobs find each other. Rank 0 finds the store, or
 * opens it. A new connection replaces a lost one. Other ranks make no connection. Only one thread
 * at a time may call the methods, except {@link #close}, which ends calls in progress.
 */
final class JobStore implements AutoCloseable {
  // Time limits of three steps: an attempt to find or reach the store, a test whether it answers,
  // and the wait for a presence key to disappear. The last limit is shorter than the ranks' grace
  // time.
  private static final Duration ATTEMPT_LIMIT = Duration.ofSeconds(5);
  private static final Duration PROBE_LIMIT = Duration.ofSeconds(2);
  private static final Duration REMOVAL_LIMIT = Duration.ofSeconds(3);

  private final String job;
  private final JobRanks ranks;
  private final Map<String, String> environment;
  private final Resources resources;
  private final Cleaner.Cleanable cleanable;
  private String instance = "";

  /**
   * Closes the connection and the store when their owner is unreachable and nobody has closed it.
   * Thread-safe.
   */
  private static final class Resources extends Leaks.Resource {
    private volatile @Nullable LinkRendezvous rendezvous; // null before the first search
    private @Nullable Store store; // null while there is no connection
    private volatile boolean isClosed;

    Resources(String what) {
      super(what);
    }

    void requireOpen() {
      if (isClosed) {
        throw new ClosedException("the job was closed");
      }
    }

    synchronized Optional<Store> store() {
      requireOpen();
      return Optional.ofNullable(store);
    }

    void connect(Map<String, String> environment, Member member, Deadline until) {
      replace(null);
      requireOpen();
      if (rendezvous == null) {
        rendezvous = new LinkRendezvous(environment, Native.wl_version());
      }
      try {
        rendezvous.find(until.left(ATTEMPT_LIMIT));
        requireOpen();
        replace(rendezvous.connect(member, until.left(ATTEMPT_LIMIT)));
      } finally {
        if (isClosed) {
          free();
        }
      }
      requireOpen();
    }

    private void replace(@Nullable Store next) {
      Store last;
      synchronized (this) {
        last = store;
        store = next;
      }
      if (last != null) {
        last.close();
      }
    }

    @Override
    protected boolean mayWait() {
      return true;
    }

    @Override
    protected void free() {
      isClosed = true;
      replace(null);
      if (rendezvous != null) {
        rendezvous.close();
      }
    }
  }

  JobStore(String job, JobRanks ranks, Map<String, String> environment) {
    this.job = job;
    this.ranks = ranks;
    this.environment = environment;
    resources = new Resources("Job '" + job + "' of rank " + ranks.rank());
    cleanable = Leaks.watch(this, resources);
  }

  Optional<Store> store() {
    return resources.store();
  }

  /** Returns the identifier of the connection; empty before the first. */
  String instance() {
    return instance;
  }

  Store reach(Deadline until) {
    if (isLost(until)) {
      open(until);
    }
    return store().orElseThrow();
  }

  boolean isLost(Deadline until) {
    Optional<Store> store = store();
    if (store.isEmpty()) {
      return true;
    }
    Duration limit = until.left(PROBE_LIMIT);
    try {
      store.get().get("jobs", limit); // any key
      return false;
    } catch (PeerLostException | ClosedException e) {
      resources.requireOpen();
      return true;
    } catch (DeadlineExceededException e) {
      return limit.equals(PROBE_LIMIT); // in less time, the store may still answer
    }
  }

  /**
   * Waits a short time for the presence key {@code theirs} to disappear, and returns true if it has
   * disappeared, which means that its job has given up.
   */
  boolean hasGivenUp(Presence theirs, Deadline until) {
    try {
      Duration limit = until.left(REMOVAL_LIMIT);
      store().orElseThrow().awaitOther(theirs.key(), theirs.value(), limit);
      return true;
    } catch (DeadlineExceededException e) {
      return false;
    } catch (PeerLostException | ClosedException e) {
      resources.requireOpen();
      return true; // the key was lost with the store
    }
  }

  private void open(Deadline until) {
    long startNs = System.nanoTime();
    while (true) {
      // The store may not have detected yet that an earlier connection was lost.
      String next = UUID.randomUUID().toString();
      Member member = new Member(job + "/" + next, 0, ranks.size(), Native.wl_version());
      try {
        resources.connect(environment, member, until);
        instance = next;
        return;
      } catch (PeerLostException e) {
        if (until.isOver()) {
          throw e;
        }
      } catch (DeadlineExceededException e) {
        if (until.isOver()) {
          Duration waited = Duration.ofNanos(System.nanoTime() - startNs);
          throw new DeadlineExceededException(
              "no store for " + Deadline.text(waited) + " where " + LinkRendezvous.VARIABLE
                  + " has jobs connect; the last attempt: " + e.getMessage(),
              e);
        }
      }
    }
  }

  /** Removes a presence key of this job, if the store still answers. */
  void remove(Presence own) {
    try {
      store().ifPresent(store -> LinkSearch.remove(store, own));
    } catch (WindlassException e) {
      // The key disappears when the connection ends.
    }
  }

  /** Disconnects, and closes the store if this process has opened it. Idempotent. */
  @Override
  public void close() {
    resources.closed();
    cleanable.clean();
  }
}
