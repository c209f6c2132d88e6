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
import org.jspecify.annotations.Nullable;
import org.windlass.Communicator;
import org.windlass.CommunicatorOptions;
import org.windlass.error.ClosedException;
import org.windlass.error.DeadlineExceededException;
import org.windlass.error.InvalidArgumentException;
import org.windlass.error.MismatchException;
import org.windlass.error.PeerLostException;
import org.windlass.error.WindlassException;
import org.windlass.internal.Copies;
import org.windlass.internal.Deadline;
import org.windlass.internal.Failures;
import org.windlass.internal.rendezvous.Host;
import org.windlass.internal.rendezvous.LinkRendezvous;
import org.windlass.internal.rendezvous.LinkSearch;
import org.windlass.internal.store.Encoding;
import org.windlass.internal.transfer.Names;
import org.windlass.layout.Layout;
import org.windlass.link.Link;
import org.windlass.link.LinkTransferBuilder;

/**
 * A rank of a job that connects to other jobs. Each job has a communicator of its own. Jobs are
 * launched separately, in any order. They connect by the name of a link, which has one source job
 * and any number of target jobs. The ranks of the source are the link's senders, and the ranks of a
 * target are its receivers. One process may have several jobs.
 *
 * <pre>{@code
 * try (var job = Job.fromEnvironment("inference");
 *     var link = job.connect("policy", Role.TARGET, ofMinutes(5))) {
 *   var transfer = link.transferBuilder()
 *       .into("l0.q_proj", shape, qkv.narrow(0, 0, 128), tp.layout(shard(0)))
 *       .register(ofMinutes(1));
 *   while (!transfer.isFinished()) {
 *     transfer.tryReceive(ofSeconds(30))
 *         .ifPresent(v -> engine.swap(transfer.tensor("l0.q_proj"), v)); // read it each time
 *   }
 * }
 * }</pre>
 *
 * <p>Jobs find each other at a store, which the environment variable {@code
 * WINDLASS_LINK_RENDEZVOUS} names. Its value is HOST:PORT, an etcd:// address, or a name. HOST:PORT
 * needs a token, as for the start of a communicator. A name works for jobs of one user on one host.
 * The first job opens the store, and keeps it open until the job closes. With HOST:PORT, only a job
 * whose rank 0 runs on HOST opens the store. Jobs that have connected do not need the store any
 * more. If the store is lost, one of the remaining jobs opens another store.
 *
 * <p>The ranks of a source may be Python processes. The target computes their plans.
 *
 * <p>If a rank of one job is lost or closes, the link ends, and both jobs may connect again. This
 * includes a job that was restarted.
 */
public final class Job implements AutoCloseable {
  private final String name;
  private final Communicator communicator;
  private final boolean ownsCommunicator;
  private final JobRanks ranks;
  private final JobStore store;

  final JobConnector connector;

  private final AtomicReference<Thread> caller = new AtomicReference<>();

  private Job(
      String name, Communicator communicator, boolean ownsCommunicator, CommunicatorOptions options,
      Map<String, String> environment, Deadline until) {
    this.name = name;
    this.communicator = communicator;
    this.ownsCommunicator = ownsCommunicator;
    Host host = Host.of(environment);
    ranks = new JobRanks(name, communicator, until);
    store = new JobStore(name, ranks, environment);
    connector = new JobConnector(name, ranks, store, options, host);
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
   * Creates a job as {@link #fromEnvironment(String, CommunicatorOptions, Duration)} does, with
   * default options and a deadline of 60 seconds.
   */
  public static Job fromEnvironment(String name) {
    return fromEnvironment(name, CommunicatorOptions.defaults(), Duration.ofSeconds(60));
  }

  /**
   * Makes the communicator of the ranks that a launcher started, as
   * {@link Communicator#fromEnvironment} does. Then connects to the store where jobs find each
   * other. Collective over those ranks.
   *
   * @param name name of the job, at most 64 bytes without a slash. Targets of one link have
   *     different names: a second target of the same name waits until the first has left.
   * @param options options of the communicator, and of links of which the job is the source
   * @param deadline limit of the whole call
   * @throws InvalidArgumentException if {@code WINDLASS_LINK_RENDEZVOUS} is not set or malformed
   */
  public static Job fromEnvironment(
      String name, CommunicatorOptions options, Duration deadline) {
    Names.require("name", name);
    Deadline until = Deadline.of(deadline);
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
   * Creates a job as {@link #of(String, Communicator, CommunicatorOptions, Duration)} does, with
   * default options. Links use the deadline of {@code communicator}.
   */
  public static Job of(String name, Communicator communicator, Duration deadline) {
    Objects.requireNonNull(communicator, "communicator");
    CommunicatorOptions options = CommunicatorOptions.defaults();
    return of(name, communicator, options.withDeadline(communicator.deadline()), deadline);
  }

  /**
   * Makes a job of the ranks of {@code communicator}. Collective over them. The caller closes the
   * communicator.
   *
   * @param name as in {@link #fromEnvironment(String, CommunicatorOptions, Duration)}
   * @param options options of links of which this job is the source
   * @param deadline limit of the whole call
   * @throws InvalidArgumentException if {@code WINDLASS_LINK_RENDEZVOUS} is not set or malformed
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
    return new Job(name, communicator, false, options, environment, Deadline.of(deadline));
  }

  /**
   * Returns the value of {@code WINDLASS_LINK_RENDEZVOUS} in a map like {@link System#getenv()};
   * empty if it is not set. Checks its text, and looks up no host.
   *
   * @throws InvalidArgumentException if it is neither a name, nor HOST:PORT, nor a store's address
   */
  public static Optional<String> linkRendezvous(Map<String, String> variables) {
    String setting = LinkRendezvous.setting(Copies.map(variables, "variables"));
    if (setting.isEmpty()) {
      return Optional.empty();
    }
    LinkRendezvous.check(setting);
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

  /**
   * Connects as {@link #connect(String, Role, Layout, Duration)} does, without a default layout.
   * Each tensor names its own layout.
   */
  public Link connect(String linkName, Role role, Duration deadline) {
    return connect(linkName, role, null, null, Deadline.of(deadline));
  }

  /**
   * Connects to the other job of a link. That job may call later. Collective over this job's ranks.
   * Both jobs compare their versions of Windlass. A source connects to one target that it is not
   * linked with yet, so it calls this method once for each target. If the other job gives up before
   * both have connected, this job waits for another one until its own deadline. The other job gives
   * up at its own deadline, if its call is interrupted, or if it dies.
   *
   * <p>If the call fails on a rank, it fails on all ranks of that job. If the reason concerns both
   * jobs, such as different versions or too little memory, it fails on all ranks of both. Jobs may
   * try again, and may connect again when a link has ended.
   *
   * @param linkName name by which the jobs find each other, at most 64 bytes without a slash
   * @param layout layout of the tensors that are added without one, over ranks of this job. On the
   *     target, it must not contain {@code Partial}
   * @param deadline limit of the whole call, which includes the wait for the other job
   * @return the link, over which the source sends and the target receives. Layouts use the ranks of
   *     their own job.
   * @throws DeadlineExceededException if the other job has not called before the deadline
   * @throws MismatchException if the jobs run different versions, or if ranks of this job call it
   *     with another link name, role or layout. A source also throws it if another job stays the
   *     source of this link for 65 seconds (15 seconds if the store is in etcd). If an earlier
   *     start of this job is the source, the call waits until its deadline for that start to end,
   *     and logs this after two seconds
   * @throws PeerLostException if a rank was lost meanwhile
   */
  public Link connect(String linkName, Role role, Layout layout, Duration deadline) {
    Objects.requireNonNull(layout, "layout");
    return connect(linkName, role, layout, null, Deadline.of(deadline));
  }

  /**
   * Connects as the public methods do. If {@code target} is not null, a source connects only to the
   * job of that name.
   */
  Link connect(
      String linkName, Role role, @Nullable Layout layout, @Nullable String target,
      Deadline until) {
    Names.require("linkName", linkName);
    Objects.requireNonNull(role, "role");
    String operation =
        "connect to link '" + linkName + "' as " + role.name().toLowerCase(Locale.ROOT);
    String call =
        operation + (target == null ? "" : " of job '" + target + "'")
            + (layout == null ? "" : " with layout " + layout.qualified());
    return exclusively(
        operation,
        () -> {
          try {
            ranks.requireSame(until, call);
            requireLayout(role, layout);
            Link link;
            do {
              link = connector.tryConnect(linkName, role, layout, target, until);
            } while (link == null);
            return link;
          } catch (WindlassException e) {
            throw Failures.within(operation, e);
          }
        });
  }

  /**
   * Returns the followers of this job, which is the source of a link.
   *
   * @param binding adds the tensors to send to a builder. It is called for each new follower.
   */
  public Followers followers(String linkName, Consumer<LinkTransferBuilder> binding) {
    Names.require("linkName", linkName);
    return new Followers(this, linkName, binding);
  }

  /** Throws Mismatch on every rank unless all ranks search for the same link. Collective. */
  void requireSameSearch(String linkName, Deadline until) {
    exclusively(
        searching(linkName),
        () -> {
          ranks.requireSame(until, searching(linkName));
          return null;
        });
  }

  /** Runs a search on rank 0. Returns the result on every rank. Collective. */
  List<String> search(String linkName, Deadline until, Function<LinkSearch, List<String>> search) {
    Supplier<Encoding> step =
        () -> {
          String names = String.join("/", connector.atStore(linkName, null, until, search));
          return out -> out.write(names.getBytes(StandardCharsets.UTF_8));
        };
    Encoding.Reading<String> reading = in -> new String(in.readAllBytes(), StandardCharsets.UTF_8);
    String names = exclusively(searching(linkName), () -> ranks.fromRank0(until, reading, step));
    return names.isEmpty() ? List.of() : List.of(names.split("/"));
  }

  private static String searching(String linkName) {
    return "look for followers of link '" + linkName + "'";
  }

  /** Returns for each argument the maximum over the ranks. Collective. */
  long[] max(Deadline until, long... own) {
    return exclusively("look after followers", () -> ranks.max(until, own));
  }

  void requireAlive() {
    ranks.requireAlive();
  }

  private void requireLayout(Role role, @Nullable Layout layout) {
    if (layout == null) {
      return;
    }
    if (layout.mesh().highestRank() >= communicator.size()) {
      throw new InvalidArgumentException(
          "connect: layout " + layout + " holds rank " + layout.mesh().highestRank()
              + "; the job has ranks 0 to " + (communicator.size() - 1));
    }
    if (role == Role.TARGET && layout.hasPartial()) {
      throw new InvalidArgumentException(
          "connect: layout " + layout + " holds Partial; a target holds values: use R or S");
    }
  }

  /** Runs a call. Throws if another thread is in a call, or the job is closed. */
  private <T> T exclusively(String what, Supplier<T> call) {
    Thread other = caller.compareAndExchange(null, Thread.currentThread());
    if (other != null) {
      throw new InvalidArgumentException(
          what + ": job '" + name + "' is in a call of thread \"" + other.getName()
              + "\"; one thread at a time may call operations on it");
    }
    try {
      if (connector.closed) {
        throw new ClosedException(what + ": job '" + name + "' was closed");
      }
      return call.get();
    } finally {
      caller.set(null);
    }
  }

  /**
   * Ends a call in progress, and disconnects from the store. If this process has opened the store,
   * other jobs lose it. Closes the communicator if {@link #fromEnvironment} made it. Links stay
   * open. Thread-safe and idempotent.
   */
  @Override
  public void close() {
    connector.closed = true;
    Communicator own = ownsCommunicator ? communicator : null;
    try (own;
        ranks;
        connector) {
      store.close();
    }
  }

  @Override
  public String toString() {
    return "Job '" + name + "', " + communicator;
  }
}
