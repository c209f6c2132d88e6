// SPDX-License-Identifier: Apache-2.0
package org.windlass.redistribute;

import java.io.DataInputStream;
import java.io.DataOutputStream;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Objects;
import java.util.Optional;
import java.util.concurrent.atomic.AtomicReference;
import java.util.function.Consumer;
import java.util.function.Function;
import java.util.function.Supplier;
import org.windlass.AbortedException;
import org.windlass.ClosedException;
import org.windlass.Communicator;
import org.windlass.CommunicatorOptions;
import org.windlass.DeadlineExceededException;
import org.windlass.InvalidArgumentException;
import org.windlass.MismatchException;
import org.windlass.PeerLostException;
import org.windlass.WindlassException;
import org.windlass.internal.Access;
import org.windlass.internal.Copies;
import org.windlass.internal.Deadline;
import org.windlass.internal.Native;
import org.windlass.internal.rendezvous.Announcement;
import org.windlass.internal.rendezvous.Host;
import org.windlass.internal.rendezvous.MeetingStore;
import org.windlass.internal.rendezvous.OthersGoneException;
import org.windlass.internal.rendezvous.Pairing;
import org.windlass.internal.rendezvous.Sign;
import org.windlass.internal.rendezvous.Start;
import org.windlass.internal.store.Encoding;
import org.windlass.layout.Layout;
import org.windlass.plan.Plan;

/**
 * A job as one of its ranks has it: a communicator of its own, and the way to other jobs. Jobs are
 * launched apart, in any order, and meet by the name of a pair, of which one is the source and
 * sends, and any number are targets and receive.
 *
 * <pre>{@code
 * try (var job = Job.fromEnvironment("inference");
 *     var link = job.meet("policy", Role.TARGET, ofMinutes(5))) {
 *   var batch = link.batch()
 *       .into("l0.q_proj", shape, qkv.narrow(0, 0, 128), tp.layout(shard(0)))
 *       .register(ofMinutes(1));
 *   while (serving) {
 *     batch.receive(ofSeconds(30));
 *     engine.swap(batch.tensor("l0.q_proj"), batch.version()); // one of two halves
 *   }
 * }
 * }</pre>
 *
 * <p>They meet at a store, which the environment variable {@code WINDLASS_MEETING} names:
 * HOST:PORT, with a token as for the start of a communicator, an etcd:// address, or a name, by
 * which jobs of one user find one another on one host. It belongs to the job that comes first, as
 * long as rank 0's process has its job open; with HOST:PORT, to one whose rank 0 lives on HOST.
 * Once jobs have met, they do without it. Where it is lost, meetings go on at a new one, which one
 * of those jobs opens that are left.
 *
 * <p>The source may be a job of processes that are no JVM, for which the target makes the plans.
 *
 * <p>When a rank of either job is lost, or closes, their link ends, and each side may meet again:
 * the one that is started anew as the one that went on.
 */
public final class Job implements AutoCloseable {
  private static final System.Logger LOGGER = System.getLogger("org.windlass");

  /** Goes up with every change of how jobs meet and what their ranks tell one another then. */
  private static final int PROTOCOL = 3;

  /**
   * What has become of a meeting on a rank: what a store that is lost, the other job that gives up
   * or another rank of this job to which one of these has happened may have done; the other job gave
   * up before it came; or else.
   */
  private static final long MET = 0;

  private static final long LOST = 1;
  private static final long GONE = 2;
  private static final long FAILED = 3;

  private static final JobRanks.Form<Pairing.Match> MATCH =
      new JobRanks.Form<>() {
        @Override
        public void write(Pairing.Match match, DataOutputStream out) throws IOException {
          out.writeLong(match.meeting());
          write(match.theirs(), out);
          write(match.own(), out);
          out.write(match.other().toBytes());
        }

        private static void write(Sign sign, DataOutputStream out) throws IOException {
          out.writeUTF(sign.key());
          Encoding.putArray(out, sign.value());
        }

        @Override
        public Pairing.Match read(DataInputStream in) throws IOException {
          return new Pairing.Match(
              in.readLong(),
              sign(in),
              sign(in),
              Announcement.of(in.readAllBytes(), versions(), WindlassException::of));
        }

        private static Sign sign(DataInputStream in) throws IOException {
          return new Sign(in.readUTF(), Encoding.array(in));
        }
      };

  private static final JobRanks.Form<List<String>> NAMES =
      new JobRanks.Form<>() {
        @Override
        public void write(List<String> names, DataOutputStream out) throws IOException {
          out.write(String.join("/", names).getBytes(StandardCharsets.UTF_8));
        }

        @Override
        public List<String> read(DataInputStream in) throws IOException {
          String all = new String(in.readAllBytes(), StandardCharsets.UTF_8);
          return all.isEmpty() ? List.of() : List.of(all.split("/"));
        }
      };

  private final String name;
  private final Communicator communicator;
  private final boolean ownsCommunicator;
  private final CommunicatorOptions options;
  private final Host host;

  /** The same ranks, for what this calls by itself. */
  private final JobRanks ranks;

  private final JobStore store;

  /** Rank 0's. */
  Pairing.Rivals rivals = new Pairing.Rivals(Pairing.Patience.USUAL);

  /** Of transfers between this job and others. */
  private final StepsMemo memo = new StepsMemo();

  private volatile boolean closed;

  /** The thread whose call is in progress. */
  private final AtomicReference<Thread> caller = new AtomicReference<>();

  /** Of both jobs, on their way to a link; null otherwise. */
  private final AtomicReference<Communicator> meeting = new AtomicReference<>();

  private Job(
      String name,
      Communicator communicator,
      boolean ownsCommunicator,
      CommunicatorOptions options,
      Map<String, String> environment,
      Duration deadline) {
    this.name = name;
    this.communicator = communicator;
    this.ownsCommunicator = ownsCommunicator;
    this.options = options;
    host = Host.of(environment, WindlassException::of);
    Until until = until(deadline);
    ranks = new JobRanks(name, communicator, until);
    store = new JobStore(name, ranks, environment);
    try {
      store.connect(until);
    } catch (RuntimeException | Error e) {
      try (ranks;
          store) {
        throw e;
      }
    }
  }

  /**
   * {@link #fromEnvironment(String, CommunicatorOptions, Duration)} with defaults and 60 seconds.
   */
  public static Job fromEnvironment(String name) {
    return fromEnvironment(name, CommunicatorOptions.defaults(), Duration.ofSeconds(60));
  }

  /**
   * Collective over the ranks that a launcher started: {@link Communicator#fromEnvironment}, and
   * the way to the store where jobs meet, which is opened where there is none.
   *
   * @param name of the job, at most 64 bytes without a slash; jobs of one pair have different names
   * @param options of its communicator, and of links of which it is the source
   * @param deadline for all of it
   */
  public static Job fromEnvironment(
      String name, CommunicatorOptions options, Duration deadline) {
    Names.require("name", name);
    Until until = until(deadline);
    Communicator communicator = Communicator.fromEnvironment(options, deadline);
    try {
      return new Job(name, communicator, true, options, System.getenv(), until.left());
    } catch (RuntimeException | Error e) {
      try (communicator) {
        throw e;
      }
    }
  }

  /**
   * {@link #of(String, Communicator, CommunicatorOptions, Duration)} with defaults and the deadline
   * of {@code communicator}.
   */
  public static Job of(String name, Communicator communicator, Duration deadline) {
    Objects.requireNonNull(communicator, "communicator");
    return of(
        name,
        communicator,
        CommunicatorOptions.defaults().withDeadline(communicator.deadline()),
        deadline);
  }

  /**
   * Collective over {@code communicator}: the job of its ranks, which stays the caller's to close.
   *
   * @param options of links of which this job is the source
   * @param deadline for all of it
   */
  public static Job of(
      String name, Communicator communicator, CommunicatorOptions options, Duration deadline) {
    return of(name, communicator, options, System.getenv(), deadline);
  }

  /** The same with other variables than the process has. */
  static Job of(
      String name,
      Communicator communicator,
      CommunicatorOptions options,
      Map<String, String> environment,
      Duration deadline) {
    Names.require("name", name);
    Objects.requireNonNull(communicator, "communicator");
    Objects.requireNonNull(options, "options");
    return new Job(name, communicator, false, options, environment, deadline);
  }

  /**
   * What {@code WINDLASS_MEETING} is among these variables, as {@link System#getenv()} has them, if
   * it is set: checked by its text alone; no host is looked up.
   *
   * @throws InvalidArgumentException if it is neither a name, nor HOST:PORT, nor a store's address
   */
  public static Optional<String> meetingPlace(Map<String, String> variables) {
    String setting = Copies.map(variables, "variables").getOrDefault(MeetingStore.VARIABLE, "");
    if (setting.isEmpty()) {
      return Optional.empty();
    }
    MeetingStore.check(setting, WindlassException::of);
    return Optional.of(setting);
  }

  /** The name that it was given. */
  public String name() {
    return name;
  }

  /** That of the job's own ranks. */
  public Communicator communicator() {
    return communicator;
  }

  /** {@link #meet(String, Role, Layout, Duration)} without a layout: each tensor names its own. */
  public Link meet(String pair, Role role, Duration deadline) {
    return met(pair, role, null, null, until(deadline));
  }

  /**
   * Collective over this job's ranks: meets the other job of a pair, in whatever order they come.
   * Both compare the versions of what they run. The source meets a target that is not linked with
   * it, the one that has come if there is one; it calls this once for each. Either waits for
   * another, within its deadline, where a job that it has found gives up before they have met: at
   * that job's own deadline, for a call of it that was ended, or because it died.
   *
   * <p>Where it fails on a rank it fails on all of that job, and where what it fails of concerns
   * both jobs, such as other versions or too little memory, on all of both; they may try again. It
   * may be called again when a link has ended, by the job that went on as by one that was started
   * anew.
   *
   * @param pair by which the jobs find one another, at most 64 bytes without a slash
   * @param layout of tensors for which none is named, over ranks of this job; on the target without
   *     {@code Partial}
   * @param deadline for the other job to come, and for all of it
   * @return the link, of which the source sends and the target receives; layouts are by ranks as
   *     each job counts its own
   * @throws DeadlineExceededException if the other job has not come
   * @throws MismatchException if the jobs run different versions; if ranks of this job call it with
   *     another pair, role or layout, which it finds at once; it names both; as the source, if
   *     another job has been the source of this pair since, for longer than the store keeps the
   *     place of a job that has ended: 65 seconds, in etcd 15. It waits for an earlier start of
   *     this job to end, and says so in the log after two seconds
   * @throws PeerLostException if a rank was lost meanwhile; a store that is lost is not, while
   *     there is time for another
   */
  public Link meet(String pair, Role role, Layout layout, Duration deadline) {
    Objects.requireNonNull(layout, "layout");
    return met(pair, role, layout, null, until(deadline));
  }

  /**
   * The same.
   *
   * @param other the name of the job to meet; null for any
   */
  Link met(String pair, Role role, Layout layout, String other, Until until) {
    Names.require("pair", pair);
    Objects.requireNonNull(role, "role");
    String operation =
        "meet of pair '" + pair + "' as " + role.name().toLowerCase(Locale.ROOT);
    String call =
        operation
            + (other == null ? "" : " of job '" + other + "'")
            + (layout == null ? "" : " with layout " + layout.qualified());
    return within(
        operation,
        () -> {
          try {
            ranks.agree(until, call);
            requireLayout(role, layout);
            Link link;
            do {
              Pairing.Match match = match(pair, role, layout, other, until);
              link = linked(pair, role, match, announcement(layout), until, other == null);
            } while (link == null);
            return link;
          } catch (WindlassException e) {
            throw Link.within(operation, e);
          }
        });
  }

  private static Until until(Duration deadline) {
    return new Until(Deadline.nanos(deadline, WindlassException::of));
  }

  /**
   * The jobs that follow this one by a pair, of which it is the source.
   *
   * @param binding adds to a batch what is sent; called for each follower that comes
   */
  public Followers followers(String pair, Consumer<LinkBatch> binding) {
    Names.require("pair", pair);
    return new Followers(this, pair, binding);
  }

  /** Collective, as the source: throws on every rank where one calls something else. */
  void agreeToLook(String pair, Until until) {
    String call = looking(pair);
    within(
        call,
        () -> {
          ranks.agree(until, call);
          return null;
        });
  }

  /**
   * Collective, once all have {@linkplain #agreeToLook agreed}: what a look at a pair gives.
   *
   * @param look by rank 0, which finds a way to the pair first
   */
  List<String> look(
      String pair, Until until, Function<Supplier<Pairing>, List<String>> look) {
    return within(
        looking(pair),
        () ->
            ranks.led(
                until,
                NAMES,
                () ->
                    look.apply(
                        () -> {
                          store.reach(until);
                          return pairing(pair, announcement(null), until);
                        })));
  }

  private static String looking(String pair) {
    return "look for followers of pair '" + pair + "'";
  }

  /** {@link JobRanks#most}. */
  long[] most(Until until, long... own) {
    return within("look after followers", () -> ranks.most(until, own));
  }

  /** Throws where this job's own ranks can't go on. */
  void requireAlive() {
    ranks.requireAlive();
  }

  private Pairing pairing(String pair, Announcement own, Until until) {
    return new Pairing(store.store(), pair, own, until.left(), rivals, WindlassException::of);
  }

  private void requireLayout(Role role, Layout layout) {
    if (layout == null) {
      return;
    }
    if (layout.mesh().highestRank() >= communicator.size()) {
      throw new InvalidArgumentException(
          "meet: layout "
              + layout
              + " holds rank "
              + layout.mesh().highestRank()
              + "; the job has ranks 0 to "
              + (communicator.size() - 1));
    }
    if (role == Role.TARGET && layout.hasPartial()) {
      throw new InvalidArgumentException(
          "meet: layout "
              + layout
              + " holds Partial; a target holds values: use R or S");
    }
  }

  /** What {@code call} gives, the only one on this rank at its time. */
  private <T> T within(String what, Supplier<T> call) {
    Thread other = caller.compareAndExchange(null, Thread.currentThread());
    if (other != null) {
      throw new InvalidArgumentException(
          what
              + ": job '"
              + name
              + "' is in a call of thread \""
              + other.getName()
              + "\"; one thread at a time may call operations on it");
    }
    try {
      if (closed) {
        throw new ClosedException(what + ": job '" + name + "' was closed");
      }
      return call.get();
    } finally {
      caller.set(null);
    }
  }

  private Announcement announcement(Layout layout) {
    return new Announcement(
        versions(),
        name,
        store.instance(),
        ProcessHandle.current().pid(),
        communicator.size(),
        layout == null ? "" : layout.qualified(),
        new Start.Config(
            options.firstSequence(),
            options.cores(),
            options.blocks(),
            Deadline.nanos(options.deadline(), WindlassException::of),
            options.adjustThreads()),
        false);
  }

  /** Of all that two jobs have to have alike. */
  static String versions() {
    return "windlass "
        + Native.wl_version()
        + ", ABI "
        + Native.wl_abi_version()
        + ", meeting protocol "
        + PROTOCOL
        + ", plan "
        + Plan.VERSION
        + ", offer "
        + Offer.FORMAT;
  }

  private Pairing.Match match(
      String pair, Role role, Layout layout, String other, Until until) {
    return ranks.led(
        until,
        MATCH,
        () ->
            outliving(
                until,
                () -> {
                  store.reach(until);
                  Pairing pairing = pairing(pair, announcement(layout), until);
                  return role == Role.SOURCE ? pairing.source(other) : pairing.target();
                }));
  }

  /**
   * On rank 0: what a call gives that waits at the store, and begins again at another one where
   * that is lost.
   *
   * @param call finds its way to the store
   */
  static <T> T outliving(Until until, Supplier<T> call) {
    while (true) {
      try {
        return call.get();
      } catch (PeerLostException e) {
        if (until.isOver()) {
          throw e;
        }
      }
    }
  }

  /**
   * Collective: the link with the job of a match, on all ranks; null on all where nothing came of
   * it and they are to match anew: the store was lost, or the other job has given up.
   *
   * @param isForAny whether another job may take that one's place
   */
  private Link linked(
      String pair,
      Role role,
      Pairing.Match match,
      Announcement own,
      Until until,
      boolean isForAny) {
    String way = store.instance();
    Link link = null;
    Throwable failure = null;
    try {
      link = join(pair, role, match, own, until);
    } catch (RuntimeException | Error e) {
      failure = e;
    }
    // What this rank is interrupted in is over.
    boolean interrupted = Thread.interrupted();
    try {
      long standing = interrupted && failure != null ? FAILED : standing(failure, until);
      long worst = ranks.most(until, standing)[0];
      if (worst == MET && !closed) {
        return link;
      }
      if (worst == MET) {
        failure = new ClosedException("the job was closed"); // and the link with it, maybe
      } else if (worst == LOST && store.isOver(way, until)) {
        failure = null;
      } else if (isForAny
          && (worst == GONE || (worst == LOST && store.isGone(match.theirs(), way, until)))) {
        tellWhoGaveUp(pair, match.other(), failure);
        failure = null;
      } else if (failure == null) {
        failure =
            new AbortedException("another rank of job '" + name + "' has failed; see what it says");
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
        store.takeBack(match.own());
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

  /** What has become of a meeting on a rank; the worst counts. */
  private static long standing(Throwable failure, Until until) {
    if (failure == null) {
      return MET;
    }
    if (failure.getCause() instanceof OthersGoneException) {
      return GONE;
    }
    // The deadline that passes first ends the meeting for both.
    boolean isOthersLate = failure instanceof DeadlineExceededException && !until.isOver();
    boolean isLost = failure instanceof PeerLostException || failure instanceof AbortedException;
    return isLost || isOthersLate ? LOST : FAILED;
  }

  /** On rank 0, in the log: no call throws it. */
  private void tellWhoGaveUp(String pair, Announcement other, Throwable failure) {
    if (ranks.rank() == 0) {
      LOGGER.log(
          System.Logger.Level.WARNING,
          "job ''{0}'', pair ''{1}'': {2} gave up before they had met, and another is waited for:"
              + " {3}",
          name,
          pair,
          other,
          failure == null ? "another rank of this job saw it" : failure.getMessage());
    }
  }

  /** Makes the link, with the ranks of the other job. */
  private Link join(
      String pair, Role role, Pairing.Match match, Announcement own, Until until) {
    boolean sends = role == Role.SOURCE;
    Announcement source = sends ? own : match.other();
    Announcement target = sends ? match.other() : own;
    String whose = whose(source, target);
    Link link = null;
    Communicator side = null;
    try {
      store.connect(until); // which rank 0 may have done anew
      side = ranks.again(until);
      long handle =
          Start.join(
              store.store(),
              match.name(),
              match.theirs(),
              List.of((sends ? 0 : source.ranks()) + ranks.rank()),
              source.ranks() + target.ranks(),
              source.options(),
              host,
              until.left(),
              WindlassException::of)[0];
      Communicator both =
          (Communicator)
              Access.ADOPTION
                  .of(communicator)
                  .of(handle, Duration.ofNanos(source.options().deadlineNs()), "meet");
      meeting.set(both);
      if (closed) {
        both.close();
      }
      link =
          Link.between(
              pair,
              whose,
              both,
              side,
              source.ranks(),
              source.areGuests(),
              layout(source),
              layout(target),
              memo,
              until);
      return link;
    } catch (OthersGoneException e) {
      close(side);
      throw new PeerLostException(e.getMessage() + whose, e);
    } catch (WindlassException e) {
      close(side);
      throw WindlassException.of(
          e.code().number(), e.getMessage() + whose, e, e.operation(), e.culprits());
    } catch (RuntimeException | Error e) {
      close(side);
      throw e;
    } finally {
      meeting.set(null);
      // A target that has met keeps its place, which another of its name may not have.
      if (ranks.rank() == 0 && (sends || link == null)) {
        store.takeBack(match.own());
      }
    }
  }

  private static void close(Communicator side) {
    if (side != null) {
      side.close();
    }
  }

  /** Null where the job has named none. */
  private static Layout layout(Announcement job) {
    return job.layout().isEmpty() ? null : Layout.parse(job.layout());
  }

  /** What messages that name ranks of both say of them. */
  private static String whose(Announcement source, Announcement target) {
    return " (" + ranks(0, source) + ", " + ranks(source.ranks(), target) + ")";
  }

  private static String ranks(int first, Announcement of) {
    int last = first + of.ranks() - 1;
    return (first == last ? "rank " + first + " is" : "ranks " + first + " to " + last + " are")
        + " job '"
        + of.job()
        + "'";
  }

  /**
   * Ends a call in progress, lets go of the store, which others lose where this process has it, and
   * of the communicator where the job made it. Links go on. From any thread; idempotent.
   */
  @Override
  public void close() {
    closed = true;
    Communicator both = meeting.get();
    Communicator own = ownsCommunicator ? communicator : null;
    try (own;
        ranks;
        both) {
      store.close();
    }
  }

  @Override
  public String toString() {
    return "Job '" + name + "', " + communicator;
  }
}
