// SPDX-License-Identifier: Apache-2.0
package org.windlass.job;

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
import org.windlass.Communicator;
import org.windlass.CommunicatorOptions;
import org.windlass.error.AbortedException;
import org.windlass.error.ClosedException;
import org.windlass.error.DeadlineExceededException;
import org.windlass.error.InvalidArgumentException;
import org.windlass.error.MismatchException;
import org.windlass.error.PeerLostException;
import org.windlass.error.WindlassException;
import org.windlass.internal.Copies;
import org.windlass.internal.Deadline;
import org.windlass.internal.Failures;
import org.windlass.internal.Native;
import org.windlass.internal.rendezvous.Announcement;
import org.windlass.internal.rendezvous.Host;
import org.windlass.internal.rendezvous.MeetingStore;
import org.windlass.internal.rendezvous.Pairing;
import org.windlass.internal.rendezvous.Start;
import org.windlass.internal.rendezvous.StoreAllGather;
import org.windlass.internal.store.Encoding;
import org.windlass.internal.store.OthersGoneException;
import org.windlass.internal.store.Store;
import org.windlass.internal.transfer.Names;
import org.windlass.internal.transfer.Offer;
import org.windlass.internal.transfer.StepsMemo;
import org.windlass.internal.transfer.Until;
import org.windlass.layout.Layout;
import org.windlass.link.Link;
import org.windlass.link.LinkBatch;
import org.windlass.plan.Plan;

/**
 * A rank of a job that meets other jobs. Each job has a communicator of its own. Jobs are launched
 * separately, in any order. They meet by the name of a pair, which has one source and any number of
 * targets. The source sends tensors, and the targets receive them.
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
 * <p>Jobs meet at a store, which the environment variable {@code WINDLASS_MEETING} names. It is
 * HOST:PORT, with a token as for the start of a communicator; an etcd:// address; or a name, for
 * jobs of one user on one host. The first job opens the store, and has it until it closes. With
 * HOST:PORT, only a job whose rank 0 runs on HOST opens it. Jobs that have met do not need the
 * store any more. If it is lost, one of the jobs that are left opens another.
 *
 * <p>The ranks of a source may be Python processes. The target makes their plans.
 *
 * <p>If a rank of one job is lost or closes, the link ends, and both jobs may meet again. This
 * includes a job that was restarted.
 */
public final class Job implements AutoCloseable {
  private static final System.Logger LOGGER = System.getLogger("org.windlass");

  /** Version of what jobs and their ranks exchange until they have met. */
  private static final int PROTOCOL = 3;

  // Outcomes of a meeting on a rank. All ranks of a job take the highest one.
  private static final long JOINED = 0;
  private static final long LOST = 1; // the store, the other job, or another rank of this job
  private static final long GONE = 2; // the other job gave up before it joined
  private static final long FAILED = 3;

  private final String name;
  private final Communicator communicator;
  private final boolean ownsCommunicator;
  private final CommunicatorOptions options;
  private final Host host;
  private final JobRanks ranks;
  private final JobStore store;

  /** Jobs that hold keys which this job needs, as rank 0 has seen them. */
  Pairing.Holders holders = new Pairing.Holders();

  /** Thread whose call is in progress. */
  private final AtomicReference<Thread> caller = new AtomicReference<>();

  private final StepsMemo memo = new StepsMemo();
  private Pairing.Match match; // on rank 0: the other job that was found last
  private volatile Communicator meeting; // of this job or of both, while they join
  private volatile boolean closed;

  private Job(
      String name, Communicator communicator, boolean ownsCommunicator, CommunicatorOptions options,
      Map<String, String> environment, Until until) {
    this.name = name;
    this.communicator = communicator;
    this.ownsCommunicator = ownsCommunicator;
    this.options = options;
    host = Host.of(environment);
    ranks = new JobRanks(name, communicator, until);
    store = new JobStore(name, ranks, environment);
    try {
      ranks.testOnRank0(until, () -> store.reach(until) != null);
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
   * Collective over the ranks that a launcher started. Makes their communicator as {@link
   * Communicator#fromEnvironment} does, and connects to the store where jobs meet.
   *
   * @param name name of the job, at most 64 bytes without a slash. Jobs of a pair have different
   *     names.
   * @param options options of the communicator, and of links of which the job is the source
   * @param deadline limit of the whole call
   */
  public static Job fromEnvironment(
      String name, CommunicatorOptions options, Duration deadline) {
    Names.require("name", name);
    Until until = until(deadline);
    Communicator communicator = Communicator.fromEnvironment(options, deadline);
    try {
      return new Job(name, communicator, true, options, System.getenv(), until);
    } catch (RuntimeException | Error e) {
      try (communicator) {
        throw e;
      }
    }
  }

  /**
   * {@link #of(String, Communicator, CommunicatorOptions, Duration)} with default options, and the
   * deadline of {@code communicator}.
   */
  public static Job of(String name, Communicator communicator, Duration deadline) {
    Objects.requireNonNull(communicator, "communicator");
    CommunicatorOptions options = CommunicatorOptions.defaults();
    return of(name, communicator, options.withDeadline(communicator.deadline()), deadline);
  }

  /**
   * Collective over {@code communicator}: makes a job of its ranks. The caller closes the
   * communicator.
   *
   * @param options options of links of which this job is the source
   * @param deadline limit of the whole call
   */
  public static Job of(
      String name, Communicator communicator, CommunicatorOptions options, Duration deadline) {
    return of(name, communicator, options, System.getenv(), deadline);
  }

  static Job of(
      String name, Communicator communicator, CommunicatorOptions options,
      Map<String, String> environment, Duration deadline) {
    Names.require("name", name);
    Objects.requireNonNull(communicator, "communicator");
    Objects.requireNonNull(options, "options");
    return new Job(name, communicator, false, options, environment, until(deadline));
  }

  /**
   * Returns the value of {@code WINDLASS_MEETING} in variables as {@link System#getenv()} has them;
   * empty if it is not set. Checks its text, and looks up no host.
   *
   * @throws InvalidArgumentException if it is neither a name, nor HOST:PORT, nor a store's address
   */
  public static Optional<String> meetingPlace(Map<String, String> variables) {
    String setting = Copies.map(variables, "variables").getOrDefault(MeetingStore.VARIABLE, "");
    if (setting.isEmpty()) {
      return Optional.empty();
    }
    MeetingStore.check(setting);
    return Optional.of(setting);
  }

  /** Returns the name of the job. */
  public String name() {
    return name;
  }

  /** Returns the communicator of the job's ranks. */
  public Communicator communicator() {
    return communicator;
  }

  /** {@link #meet(String, Role, Layout, Duration)} without a layout: each tensor names its own. */
  public Link meet(String pair, Role role, Duration deadline) {
    return meet(pair, role, null, null, until(deadline));
  }

  /**
   * Collective over this job's ranks: meets the other job of a pair, which may come later. Both
   * compare their versions of Windlass. A source meets a target that is not linked with it, and
   * calls this once for each target. If the other job gives up before both have met, this one waits
   * for another until its own deadline. The other job gives up at its own deadline, if its call is
   * interrupted, or if it dies.
   *
   * <p>If the call fails on a rank, it fails on all ranks of that job. If the reason concerns both
   * jobs, such as different versions or too little memory, it fails on all ranks of both. Jobs may
   * try again, and may meet again when a link has ended.
   *
   * @param pair name by which the jobs find each other, at most 64 bytes without a slash
   * @param layout layout of tensors for which none is named, over ranks of this job; on the target
   *     without {@code Partial}
   * @param deadline limit of the whole call, which includes the wait for the other job
   * @return the link, of which the source sends and the target receives. Layouts use the ranks of
   *     their own job.
   * @throws DeadlineExceededException if the other job did not come
   * @throws MismatchException if the jobs run different versions, or if ranks of this job call it
   *     with another pair, role or layout. A source also throws it if another job stays the source
   *     of this pair for 65 seconds, in etcd 15. It waits until its deadline for an earlier start
   *     of this job to end, and logs that after two seconds.
   * @throws PeerLostException if a rank was lost meanwhile
   */
  public Link meet(String pair, Role role, Layout layout, Duration deadline) {
    Objects.requireNonNull(layout, "layout");
    return meet(pair, role, layout, null, until(deadline));
  }

  /** Meets as the public methods do. A source meets only job {@code target} if it is not null. */
  Link meet(String pair, Role role, Layout layout, String target, Until until) {
    Names.require("pair", pair);
    Objects.requireNonNull(role, "role");
    String operation = "meet of pair '" + pair + "' as " + role.name().toLowerCase(Locale.ROOT);
    String call =
        operation
            + (target == null ? "" : " of job '" + target + "'")
            + (layout == null ? "" : " with layout " + layout.qualified());
    return exclusively(
        operation,
        () -> {
          try {
            ranks.requireSame(until, call);
            requireLayout(role, layout);
            Link link;
            do {
              link = tryMeet(pair, role, layout, target, until);
            } while (link == null);
            return link;
          } catch (WindlassException e) {
            throw Failures.within(operation, e);
          }
        });
  }

  static Until until(Duration deadline) {
    return new Until(Deadline.nanos(deadline));
  }

  /**
   * Returns the followers of this job, which is the source of a pair.
   *
   * @param binding adds the tensors to send to a batch. It is called for each new follower.
   */
  public Followers followers(String pair, Consumer<LinkBatch> binding) {
    Names.require("pair", pair);
    return new Followers(this, pair, binding);
  }

  /** Collective: throws on every rank if a rank calls something other than this search. */
  void requireSameSearch(String pair, Until until) {
    exclusively(
        searching(pair),
        () -> {
          ranks.requireSame(until, searching(pair));
          return null;
        });
  }

  /** Collective, after {@link #requireSameSearch}: returns the names of targets on every rank. */
  List<String> search(String pair, Until until, Function<Pairing, List<String>> search) {
    Supplier<Encoding> step =
        () -> {
          String names = String.join("/", atStore(pair, null, until, search));
          return out -> out.write(names.getBytes(StandardCharsets.UTF_8));
        };
    JobRanks.Decoder<String> decoder = in -> new String(in.readAllBytes(), StandardCharsets.UTF_8);
    String names = exclusively(searching(pair), () -> ranks.fromRank0(until, decoder, step));
    return names.isEmpty() ? List.of() : List.of(names.split("/"));
  }

  private static String searching(String pair) {
    return "look for followers of pair '" + pair + "'";
  }

  /** Collective: {@link JobRanks#max}. */
  long[] max(Until until, long... own) {
    return exclusively("look after followers", () -> ranks.max(until, own));
  }

  /** Throws if the communicator of the ranks has failed. */
  void requireAlive() {
    ranks.requireAlive();
  }

  /** On rank 0: searches at the store, and begins again at another one if that is lost. */
  private <T> T atStore(String pair, Layout layout, Until until, Function<Pairing, T> search) {
    while (true) {
      try {
        Store reached = store.reach(until);
        Announcement own = announcement(layout);
        return search.apply(
            new Pairing(reached, pair, own, until.left(), holders));
      } catch (PeerLostException e) {
        if (until.isOver()) {
          throw e;
        }
      }
    }
  }

  private void requireLayout(Role role, Layout layout) {
    if (layout == null) {
      return;
    }
    if (layout.mesh().highestRank() >= communicator.size()) {
      throw new InvalidArgumentException(
          "meet: layout " + layout + " holds rank " + layout.mesh().highestRank()
              + "; the job has ranks 0 to " + (communicator.size() - 1));
    }
    if (role == Role.TARGET && layout.hasPartial()) {
      throw new InvalidArgumentException(
          "meet: layout " + layout + " holds Partial; a target holds values: use R or S");
    }
  }

  /** Runs a call if no other thread is in a call, and the job is open. */
  private <T> T exclusively(String what, Supplier<T> call) {
    Thread other = caller.compareAndExchange(null, Thread.currentThread());
    if (other != null) {
      throw new InvalidArgumentException(
          what + ": job '" + name + "' is in a call of thread \"" + other.getName()
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
            options.firstSequence(), options.cores(), options.blocks(),
            Deadline.nanos(options.deadline()), options.adjustThreads()),
        false);
  }

  /** Returns the versions that both jobs of a pair must have. */
  static String versions() {
    return "windlass " + Native.wl_version() + ", ABI " + Native.wl_abi_version()
        + ", meeting protocol " + PROTOCOL + ", plan " + Plan.VERSION + ", offer " + Offer.FORMAT;
  }

  /**
   * Collective: finds the other job and links with it. Returns null on all ranks if they are to try
   * again, because the store was lost or the other job gave up.
   */
  private Link tryMeet(String pair, Role role, Layout layout, String target, Until until) {
    Function<Pairing, Pairing.Match> search =
        pairing -> role == Role.SOURCE ? pairing.source(target) : pairing.target();
    Announcement other =
        ranks.fromRank0(
            until,
            in -> Announcement.of(in.readAllBytes(), versions()),
            () -> {
              match = atStore(pair, layout, until, search);
              return out -> out.write(match.other().toBytes());
            });
    Link link = null;
    Throwable failure = null;
    try {
      link = join(pair, role, announcement(layout), other, until);
    } catch (RuntimeException | Error e) {
      failure = e;
    }
    // An interrupt has ended the call above, and must not end the ones below.
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
          && ranks.testOnRank0(until, () -> mayRetry(pair, target, worst, own, until))) {
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
        store.remove(match.own());
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

  /** On rank 0: returns whether to look for the other job again, after it or the store was lost. */
  private boolean mayRetry(
      String pair, String target, long outcome, Throwable failure, Until until) {
    if (outcome == LOST && store.isLost(until)) {
      return true;
    }
    if (target != null || (outcome == LOST && !store.hasGivenUp(match.theirs(), until))) {
      return false;
    }
    LOGGER.log(
        System.Logger.Level.WARNING,
        "job ''{0}'', pair ''{1}'': {2} gave up before they had met, and another is waited"
            + " for: {3}",
        name, pair, match.other(),
        failure == null ? "another rank of this job saw it" : failure.getMessage());
    return true;
  }

  private static long outcome(Throwable failure, Until until) {
    if (failure == null) {
      return JOINED;
    }
    if (failure.getCause() instanceof OthersGoneException) {
      return GONE;
    }
    // If this job has time left, the deadline of the other one has passed.
    boolean isOthersLate = failure instanceof DeadlineExceededException && !until.isOver();
    boolean isLost = failure instanceof PeerLostException || failure instanceof AbortedException;
    return isLost || isOthersLate ? LOST : FAILED;
  }

  /** Starts a communicator with the ranks of the other job, and makes a link of it. */
  private Link join(
      String pair, Role role, Announcement own, Announcement other, Until until) {
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
      meeting = side.communicator();
      StoreAllGather atStore =
          ranks.rank() == 0
              ? new StoreAllGather(store.store(), match.name(), size, match.theirs())
              : null;
      long handle =
          Start.join(
              new JobAllGather(side, first, atStore, until), List.of(first + ranks.rank()), size,
              source.options(), host, until.left())[0];
      Duration deadline = Duration.ofNanos(source.options().deadlineNs());
      Communicator both = Communicator.of(handle, deadline, "meet");
      meeting = both;
      if (closed) {
        both.close();
      }
      link =
          Link.between(
              pair, whose, both, side.communicator(), source.ranks(), source.areGuests(),
              layout(source), layout(target), memo, until);
      return link;
    } catch (OthersGoneException e) {
      throw new PeerLostException(e.getMessage() + whose, e);
    } catch (WindlassException e) {
      throw WindlassException.of(
          e.code().number(), e.getMessage() + whose, e, e.operation(), e.faultyRanks());
    } finally {
      meeting = null;
      // A linked target keeps its key, so that no other job of its name takes it.
      if (ranks.rank() == 0 && (sends || link == null)) {
        store.remove(match.own());
      }
      if (link == null && side != null) {
        side.close();
      }
    }
  }

  /** Returns a job's default layout; null if it has none. */
  private static Layout layout(Announcement job) {
    return job.layout().isEmpty() ? null : Layout.parse(job.layout());
  }

  /** Returns a job's ranks in the communicator of both jobs, as messages name them. */
  private static String ranks(int first, Announcement job) {
    int last = first + job.ranks() - 1;
    return (first == last ? "rank " + first + " is" : "ranks " + first + " to " + last + " are")
        + " job '" + job.job() + "'";
  }

  /**
   * Ends a call in progress, and disconnects from the store. If this process has the store, other
   * jobs lose it. Closes the communicator if {@link #fromEnvironment} made it. Links stay open.
   * Thread-safe and idempotent.
   */
  @Override
  public void close() {
    closed = true;
    Communicator both = meeting;
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
