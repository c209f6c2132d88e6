// SPDX-License-Identifier: Apache-2.0
package org.windlass.redistribute;

import java.io.DataInputStream;
import java.io.DataOutputStream;
import java.io.IOException;
import java.lang.ref.Cleaner;
import java.time.Duration;
import java.util.Map;
import java.util.UUID;
import org.windlass.ClosedException;
import org.windlass.DeadlineExceededException;
import org.windlass.PeerLostException;
import org.windlass.WindlassException;
import org.windlass.internal.Deadline;
import org.windlass.internal.Leaks;
import org.windlass.internal.Native;
import org.windlass.internal.rendezvous.MeetingPlace;
import org.windlass.internal.rendezvous.MeetingStore;
import org.windlass.internal.rendezvous.Sign;
import org.windlass.internal.store.Member;
import org.windlass.internal.store.Store;

/**
 * The way of a job's rank to the store where jobs meet, which rank 0 finds or opens and tells the
 * others of. A way that was lost is followed by another. One thread at a time, but for {@link
 * #close}, which ends calls in progress.
 */
final class JobStore implements AutoCloseable {
  /** For an answer of a store that may be there no more. */
  private static final Duration PROBE = Duration.ofSeconds(2);

  /** For a step on the way to one, before the next: where it is, and the way in. */
  private static final Duration STEP = Duration.ofSeconds(5);

  /** For a job that has failed to take its sign back; less than ranks have for one another. */
  private static final Duration TAKING_BACK = Duration.ofSeconds(3);

  /** A key that is asked for to see whether a store answers, whatever it has. */
  private static final String ANY_KEY = "jobs";

  /**
   * A way of rank 0's.
   *
   * @param instance tells it from all others
   */
  private record Way(MeetingPlace place, String instance) {}

  private static final JobRanks.Form<Way> WAY =
      new JobRanks.Form<>() {
        @Override
        public void write(Way way, DataOutputStream out) throws IOException {
          way.place.write(out);
          out.writeUTF(way.instance);
        }

        @Override
        public Way read(DataInputStream in) throws IOException {
          return new Way(MeetingPlace.read(in, WindlassException::of), in.readUTF());
        }
      };

  private static final JobRanks.Form<Boolean> ANSWER =
      new JobRanks.Form<>() {
        @Override
        public void write(Boolean answer, DataOutputStream out) throws IOException {
          out.writeBoolean(answer);
        }

        @Override
        public Boolean read(DataInputStream in) throws IOException {
          return in.readBoolean();
        }
      };

  private final String job;
  private final JobRanks ranks;
  private final Map<String, String> environment;
  private final Means means;
  private final Cleaner.Cleanable cleanable;

  /** Rank 0's, by which this rank has come in last; null before the first. */
  private Way way;

  /** What outlives an object that nobody closes. From any thread. */
  private static final class Means extends Leaks.Resource {
    /** On rank 0; null elsewhere. Guarded by this, as is all below. */
    private MeetingStore meeting;

    /** Null where there is none, or none any more. */
    private Store store;

    private boolean hasEnded;

    Means(String what) {
      super(what);
    }

    /** Null where there is none. */
    synchronized Store store() {
      requireOpen();
      return store;
    }

    synchronized void requireOpen() {
      if (hasEnded) {
        throw new ClosedException("the job was closed");
      }
    }

    synchronized MeetingStore meeting(Map<String, String> environment) {
      requireOpen();
      if (meeting == null) {
        meeting = new MeetingStore(environment, Native.wl_version(), WindlassException::of);
      }
      return meeting;
    }

    /** Closes what {@code found} has opened since this ended. */
    void keep(MeetingStore found) {
      try {
        requireOpen();
      } catch (ClosedException e) {
        found.close();
        throw e;
      }
    }

    /** Takes over a store, where this has not ended, and lets go of the one before. */
    void take(Store next) {
      Store other;
      synchronized (this) {
        other = hasEnded ? next : store;
        store = hasEnded ? null : next;
      }
      if (other != null) {
        other.close();
      }
      requireOpen();
    }

    @Override
    protected boolean mayWait() {
      return true;
    }

    @Override
    protected void free() {
      Store last;
      MeetingStore found;
      synchronized (this) {
        hasEnded = true;
        last = store;
        found = meeting;
        store = null;
      }
      if (last != null) {
        last.close();
      }
      if (found != null) {
        found.close();
      }
    }
  }

  /**
   * No way so far.
   *
   * @param environment says where the store is
   */
  JobStore(String job, JobRanks ranks, Map<String, String> environment) {
    this.job = job;
    this.ranks = ranks;
    this.environment = environment;
    means = new Means("Job '" + job + "' of rank " + ranks.rank());
    cleanable = Leaks.watch(this, means);
  }

  /** What {@link #connect}, or {@link #reach}, has come to. */
  Store store() {
    return means.store();
  }

  /** On rank 0: tells this way from all others, earlier ones of this job too. */
  String instance() {
    return way.instance;
  }

  /** Collective: sees to it that every rank has a way into the store. */
  void connect(Until until) {
    WindlassException failure;
    boolean goesOn;
    do {
      Way led = ranks.led(until, WAY, () -> reached(until));
      failure = ranks.rank() == 0 ? null : follow(led, until);
      // It may have been told of a store that has gone since.
      boolean isGone =
          failure instanceof DeadlineExceededException || failure instanceof PeerLostException;
      goesOn = isGone && !until.isOver();
    } while (ranks.most(until, goesOn ? 1 : 0)[0] != 0);
    ranks.together(failure, "finds no way to the store", until);
  }

  /** One step in rank 0's way; null, or what it failed of. */
  private WindlassException follow(Way led, Until until) {
    try {
      if (way != null && way.instance.equals(led.instance) && !isLost(until)) {
        return null;
      }
      means.take(null);
      means.take(connected(led.place, UUID.randomUUID().toString(), until));
      way = led;
      return null;
    } catch (WindlassException e) {
      return e;
    }
  }

  /** Collective: whether rank 0's way of that {@link #instance} leads nowhere any more. */
  boolean isOver(String instance, Until until) {
    return ranks.led(
        until,
        ANSWER,
        () -> {
          try {
            return !way.instance.equals(instance) || isLost(until);
          } catch (DeadlineExceededException e) {
            return false; // no time is left to find out
          }
        });
  }

  /**
   * Collective: whether those have given up, or are lost, whose sign rank 0 has seen in its way of
   * that {@link #instance}; it waits shortly for them to take it back.
   */
  boolean isGone(Sign sign, String instance, Until until) {
    return ranks.led(
        until,
        ANSWER,
        () -> {
          Store store = means.store();
          if (store == null || !way.instance.equals(instance)) {
            return true;
          }
          try {
            return sign.goes(store, part(TAKING_BACK, until));
          } catch (PeerLostException | ClosedException e) {
            means.requireOpen();
            return true; // with the store, where they were to come
          }
        });
  }

  /** By rank 0 alone: sees to it that it has a way into the store. */
  void reach(Until until) {
    reached(until);
  }

  private Way reached(Until until) {
    if (isLost(until)) {
      way = opened(until);
    }
    return way;
  }

  private boolean isLost(Until until) {
    Store store = means.store();
    if (store == null) {
      return true;
    }
    Duration once = part(PROBE, until);
    try {
      store.get(ANY_KEY, once);
      return false;
    } catch (PeerLostException | ClosedException e) {
      means.requireOpen();
      return true;
    } catch (DeadlineExceededException e) {
      if (once.compareTo(PROBE) < 0) {
        throw e; // it may answer yet
      }
      return true;
    }
  }

  private static Duration part(Duration most, Until until) {
    return Duration.ofNanos(Math.min(until.leftNs(), most.toNanos()));
  }

  /** To the store that rank 0 finds or opens. */
  private Way opened(Until until) {
    long startNs = System.nanoTime();
    while (true) {
      means.take(null);
      try {
        MeetingStore meeting = means.meeting(environment);
        MeetingPlace place = meeting.find(part(STEP, until));
        means.keep(meeting);
        String instance = UUID.randomUUID().toString();
        means.take(connected(place, instance, until));
        return new Way(place, instance);
      } catch (PeerLostException e) {
        if (until.isOver()) {
          throw e;
        }
      } catch (DeadlineExceededException e) {
        if (until.isOver()) {
          Duration waited = Duration.ofNanos(System.nanoTime() - startNs);
          throw new DeadlineExceededException(
              "no store for "
                  + Deadline.text(waited)
                  + " where "
                  + MeetingStore.VARIABLE
                  + " has jobs meet; the last attempt: "
                  + e.getMessage(),
              e);
        }
      }
    }
  }

  /**
   * Comes in, in one step.
   *
   * @param instance new: a way that was lost may count as one that is there, for as long as its end
   *     takes to arrive
   */
  private Store connected(MeetingPlace place, String instance, Until until) {
    Member member =
        new Member(job + "/" + instance, ranks.rank(), ranks.size(), Native.wl_version());
    return place.connect(member, environment, part(STEP, until), WindlassException::of);
  }

  /** By rank 0 alone. */
  void takeBack(Sign sign) {
    try {
      Store store = means.store();
      if (store != null) {
        sign.takeBack(store);
      }
    } catch (WindlassException e) {
      // With this way in, or once the store answers no more, it is of no account.
    }
  }

  /** Lets go of the store, which others lose where this process has it. Idempotent. */
  @Override
  public void close() {
    means.closed();
    cleanable.clean();
  }
}
