// SPDX-License-Identifier: Apache-2.0
package org.windlass.redistribute;

import java.io.DataInputStream;
import java.io.DataOutputStream;
import java.io.IOException;
import java.lang.ref.Cleaner;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.time.Duration;
import java.util.Map;
import java.util.UUID;
import org.windlass.ClosedException;
import org.windlass.DeadlineExceededException;
import org.windlass.PeerLostException;
import org.windlass.WindlassException;
import org.windlass.internal.Leaks;
import org.windlass.internal.Native;
import org.windlass.internal.rendezvous.MeetingFile;
import org.windlass.internal.rendezvous.MeetingStore;
import org.windlass.internal.rendezvous.Member;
import org.windlass.internal.rendezvous.SocketStore;
import org.windlass.internal.rendezvous.Store;
import org.windlass.internal.rendezvous.Token;

/**
 * The way of a job's rank to the store where jobs meet, which rank 0 finds or opens and tells the
 * others of. A way that was lost is followed by another.
 */
final class JobStore implements AutoCloseable {
  /** For an answer of a store that may be there no more. */
  private static final Duration PROBE = Duration.ofSeconds(2);

  private static final JobRanks.Form<MeetingFile.Place> PLACE =
      new JobRanks.Form<>() {
        @Override
        public void write(MeetingFile.Place place, DataOutputStream out) throws IOException {
          byte[] host = place.address().getAddress().getAddress();
          out.writeInt(host.length);
          out.write(host);
          out.writeInt(place.address().getPort());
          out.writeUTF(place.token().digits());
        }

        @Override
        public MeetingFile.Place read(DataInputStream in) throws IOException {
          InetAddress host = InetAddress.getByAddress(in.readNBytes(in.readInt()));
          InetSocketAddress address = new InetSocketAddress(host, in.readInt());
          return new MeetingFile.Place(
              address, Token.parse(in.readUTF(), "what rank 0 told", WindlassException::of));
        }
      };

  private final String job;
  private final JobRanks ranks;
  private final Map<String, String> environment;
  private final Means means;
  private final Cleaner.Cleanable cleanable;

  /** Tells this way from all others, earlier ones of this job too. */
  private String instance;

  /** What outlives an object that nobody closes. */
  private static final class Means extends Leaks.Resource {
    /** On rank 0; null elsewhere. */
    private MeetingStore meeting;

    /** Null where there is none, or none any more. */
    private Store store;

    Means(String what) {
      super(what);
    }

    @Override
    protected void free() {
      if (store != null) {
        store.close();
      }
      if (meeting != null) {
        meeting.close();
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

  /** What {@link #connect} has come to. */
  Store store() {
    return means.store;
  }

  /** Tells this way from all others, earlier ones of this job too. */
  String instance() {
    return instance;
  }

  /** Collective: sees to it that every rank has a way into the store. */
  void connect(Until until) {
    if (!ranks.any(means.store == null || isLost(means.store, until), until)) {
      return;
    }
    MeetingFile.Place place = ranks.led(until, PLACE, () -> opened(until));
    WindlassException failure = null;
    if (ranks.rank() > 0) {
      try {
        drop();
        means.store = connected(place, until.left());
      } catch (WindlassException e) {
        failure = e;
      }
    }
    ranks.together(failure, "finds no way to the store", until);
  }

  private static boolean isLost(Store store, Until until) {
    try {
      store.get("meetings", Duration.ofNanos(Math.min(until.leftNs(), PROBE.toNanos())));
      return false;
    } catch (PeerLostException | ClosedException | DeadlineExceededException e) {
      return true;
    }
  }

  /** Where the store is that rank 0 has found or opened, and has a way into. */
  private MeetingFile.Place opened(Until until) {
    if (means.meeting == null) {
      means.meeting = new MeetingStore(environment, Native.wl_version(), WindlassException::of);
    }
    while (true) {
      MeetingFile.Place place = means.meeting.find(until.left());
      Duration once = Duration.ofNanos(Math.min(until.leftNs(), PROBE.toNanos()));
      try {
        drop();
        means.store = connected(place, once);
        return place;
      } catch (WindlassException e) {
        boolean mayComeBack =
            e instanceof PeerLostException || e instanceof DeadlineExceededException;
        if (!mayComeBack || until.isOver()) {
          throw e;
        }
      }
    }
  }

  private Store connected(MeetingFile.Place place, Duration deadline) {
    // A way that was lost may count as one that is there, for as long as its end takes to arrive.
    instance = UUID.randomUUID().toString();
    Member member =
        new Member(job + "/" + instance, ranks.rank(), ranks.size(), Native.wl_version());
    return SocketStore.connect(
        place.address(), place.token(), member, deadline, WindlassException::of);
  }

  private void drop() {
    if (means.store != null) {
      means.store.close();
      means.store = null;
    }
  }

  /** Lets go of the store, which others lose where this process has it. Idempotent. */
  @Override
  public void close() {
    means.closed();
    cleanable.clean();
  }
}
