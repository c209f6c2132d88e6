// SPDX-License-Identifier: Apache-2.0
package org.windlass;

import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.net.NetworkInterface;
import java.net.SocketException;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.UUID;
import java.util.function.Function;
import java.util.stream.IntStream;
import org.windlass.internal.Deadline;
import org.windlass.internal.Native;
import org.windlass.internal.Natives;
import org.windlass.internal.rendezvous.AllGather;
import org.windlass.internal.rendezvous.Host;
import org.windlass.internal.rendezvous.JobProcesses;
import org.windlass.internal.rendezvous.MeetingFile;
import org.windlass.internal.rendezvous.MeetingPlace;
import org.windlass.internal.rendezvous.OwnStore;
import org.windlass.internal.rendezvous.Start;
import org.windlass.internal.rendezvous.StoreAllGather;
import org.windlass.internal.store.HostAndPort;
import org.windlass.internal.store.Member;
import org.windlass.internal.store.Refusal;
import org.windlass.internal.store.SocketStore;
import org.windlass.internal.store.Store;
import org.windlass.internal.store.StoreServer;
import org.windlass.internal.store.Token;

/**
 * The start of a communicator of the ranks of the processes that a launcher started, of which each
 * brings one, or as many as the others.
 */
final class EnvironmentStart {
  /** Name of the start at its store. */
  private static final String START = "start";

  /** Of a launcher that tells no name of the job, which ranks need to meet. */
  private static final String PMI_RANK = "PMI_RANK";

  private static final System.Logger LOGGER = System.getLogger("org.windlass");

  private final Map<String, String> variables;
  private final LaunchEnvironment environment;
  private final List<Integer> own;
  private final int size;
  private final CommunicatorOptions options;
  private final Duration deadline;
  private final Host host;

  /** That of this job, as long as its ranks have their communicator; null where others have it. */
  private OwnStore kept;

  /**
   * @param ranks of each process
   * @param deadline for all of it
   */
  EnvironmentStart(
      Map<String, String> variables, int ranks, CommunicatorOptions options, Duration deadline) {
    this.variables = variables;
    this.options = options;
    this.deadline = deadline;
    host = Host.of(variables, WindlassException::of);
    environment =
        LaunchEnvironment.of(variables)
            .orElseThrow(
                () -> new InvalidArgumentException("fromEnvironment: " + noLauncher(variables)));
    environment.others().ifPresent(told -> LOGGER.log(System.Logger.Level.WARNING, told));
    int most = Native.WL_MAX_RANKS / environment.size();
    if (ranks < 1 || ranks > most) {
      throw new InvalidArgumentException(
          "fromEnvironment: ranks is "
              + ranks
              + "; each of "
              + environment.size()
              + " processes has 1 to "
              + most);
    }
    int first = environment.rank() * ranks;
    own = IntStream.range(first, first + ranks).boxed().toList();
    size = environment.size() * ranks;
  }

  private static String noLauncher(Map<String, String> variables) {
    LaunchVariables all = new LaunchVariables(variables);
    if (all.isSet(PMI_RANK)) {
      return "only "
          + PMI_RANK
          + " is set, as MPICH's mpiexec does, which is not supported; have each rank set"
          + " WINDLASS_RANK to $PMI_RANK, WINDLASS_WORLD_SIZE to $PMI_SIZE and WINDLASS_JOB to a"
          + " name of the job's own, or start it with windlass run or Open MPI's mpirun";
    }
    return "no launcher has set its variables; start the program with windlass run, Open MPI's"
        + " mpirun, torchrun or srun, or set WINDLASS_RANK, WINDLASS_WORLD_SIZE and WINDLASS_JOB, a"
        + " name of the job's own";
  }

  /** The one rank of this process. */
  Communicator join() {
    Deadline until = Deadline.of(deadline, WindlassException::of);
    Communicator communicator =
        orElseClose(
            handles(until),
            handles -> Communicator.of(handles[0], options.deadline(), null, "fromEnvironment"));
    communicator.keep(kept);
    try {
      meetOnceMore(communicator, until);
      return communicator;
    } catch (Throwable e) {
      close(communicator, e);
      throw e;
    }
  }

  /** The ranks of this process. */
  LocalGroup joinAll() {
    Deadline until = Deadline.of(deadline, WindlassException::of);
    LocalGroup group =
        orElseClose(
            handles(until),
            handles -> new LocalGroup(handles, options, "fromEnvironment"));
    group.communicators().get(0).keep(kept);
    try {
      group.run(communicator -> meetOnceMore(communicator, until));
      return group;
    } catch (Throwable e) {
      close(group, e);
      throw e;
    }
  }

  /** What {@code make} makes of the handles; if that fails, the store goes that is kept for it. */
  private <T> T orElseClose(long[] handles, Function<long[], T> make) {
    try {
      return make.apply(handles);
    } catch (Throwable e) {
      if (kept != null) {
        kept.close();
      }
      throw e;
    }
  }

  /** Behind it no rank finds the store of this start where it looks for that of the next one. */
  private static void meetOnceMore(Communicator communicator, Deadline until) {
    communicator.within(until.left()).barrier();
  }

  private static void close(AutoCloseable started, Throwable failure) {
    try {
      started.close();
    } catch (Exception other) {
      failure.addSuppressed(other);
    }
  }

  /** Those of this process's ranks, once all have met. */
  private long[] handles(Deadline until) {
    Natives.require(WindlassException::of);
    if (environment.size() == 1) {
      return LocalHandles.create(size, options);
    }
    if (environment.store().isPresent()) {
      MeetingPlace.Provided place =
          new MeetingPlace.Provided(environment.store().get(), storeName());
      try (Store store = place.join(member(), variables, until.left(), WindlassException::of)) {
        return start(new StoreAllGather(store, START, size, null), until);
      }
    }
    if (environment.rendezvous().isPresent() || environment.tokenVariable().isPresent()) {
      MeetingFile.Place place = new MeetingFile.Place(address(), token());
      return environment.rank() > 0 || environment.launcherHasStore()
          ? meet(place, until)
          : meetAtOwn(place, until);
    }
    try (MeetingFile file = MeetingFile.of(fileJob(), variables, WindlassException::of)) {
      if (environment.rank() > 0) {
        return meet(file.await(until.left()), until);
      }
      // Nobody is told of it but by the file, which goes once all have come, and so does this.
      MeetingFile.Place any = new MeetingFile.Place(StoreServer.loopback(), Token.random());
      try (OwnStore opened = open(any)) {
        file.write(opened.place());
        return meet(opened.place(), until);
      }
    }
  }

  /** Meets the others at a store of this process, which stays. */
  private long[] meetAtOwn(MeetingFile.Place place, Deadline until) {
    InetSocketAddress known =
        HostAndPort.awaited(
            "fromEnvironment: the place where the ranks meet",
            place.address(),
            until,
            WindlassException::of);
    OwnStore opened = open(new MeetingFile.Place(known, place.token()));
    try {
      long[] handles = meet(opened.place(), until);
      opened.started();
      kept = opened;
      return handles;
    } finally {
      if (kept == null) {
        opened.close();
      }
    }
  }

  /** Meets the others at a store, which rank 0's process has, or the launcher. */
  private long[] meet(MeetingFile.Place place, Deadline until) {
    try {
      while (true) {
        try (Store store = connected(place, until.left())) {
          StoreAllGather all = new StoreAllGather(store, START, size, null);
          try {
            JobProcesses.tell(store, own.get(0), until.left(), WindlassException::of);
            return start(all, until);
          } catch (PeerLostException e) {
            boolean isOfThisStart =
                environment.rank() == 0
                    || environment.launcherHasStore()
                    || all.isOpen()
                    || !e.culprits().isEmpty();
            if (isOfThisStart || until.isOver()) {
              throw e;
            }
            // The store of an earlier start has gone; the next attempt finds that of this one.
          }
        }
      }
    } catch (DeadlineExceededException | PeerLostException e) {
      boolean isOwn = environment.rank() == 0 && !environment.launcherHasStore();
      if (isOwn || !e.culprits().isEmpty()) {
        throw e;
      }
      throw storeFailure(e);
    }
  }

  /** A launcher has its store before it starts ranks. */
  private Store connected(MeetingFile.Place place, Duration deadline) {
    return environment.launcherHasStore()
        ? SocketStore.connectToOpen(
            place.address(), place.token(), member(), deadline, WindlassException::of)
        : SocketStore.connect(
            place.address(), place.token(), member(), deadline, WindlassException::of);
  }

  /** What is said where another process's store does not answer, or is lost. */
  private WindlassException storeFailure(WindlassException e) {
    String whose =
        environment.launcherHasStore()
            ? "waiting for the launcher, which has the store where ranks meet: "
            : "waiting for rank 0, whose process has the store where ranks meet: ";
    String why = e.getCause() instanceof Refusal refusal ? refusal.getMessage() : e.getMessage();
    return WindlassException.of(
        e.code().number(),
        whose + why,
        e,
        "",
        environment.launcherHasStore() ? List.of() : List.of(0));
  }

  private Member member() {
    return new Member(job(), own.get(0), size, Native.wl_version());
  }

  private long[] start(AllGather all, Deadline until) {
    return Start.join(
        all, own, size, options.config(), host, until.left(), WindlassException::of);
  }

  private OwnStore open(MeetingFile.Place place) {
    try {
      return OwnStore.open(place, Native.wl_version(), WindlassException::of);
    } catch (ResourceException e) {
      throw new ResourceException(
          "rank 0: "
              + e.getMessage()
              + (isOfThisHost(place.address().getAddress())
                  ? "; another process that has rank 0 too, or another program, may listen there"
                  : "; this host has no such address: start rank 0 on the host that "
                      + placeVariable()
                      + " names, or have it name this one, on all ranks"),
          e);
    }
  }

  /** The one that says where the ranks meet. */
  private String placeVariable() {
    return variables.getOrDefault(LaunchEnvironment.RENDEZVOUS, "").isEmpty()
        ? LaunchEnvironment.MASTER_ADDRESS
        : LaunchEnvironment.RENDEZVOUS;
  }

  /** As far as that can be told. */
  private static boolean isOfThisHost(InetAddress address) {
    try {
      return address.isLoopbackAddress()
          || address.isAnyLocalAddress()
          || NetworkInterface.getByInetAddress(address) != null;
    } catch (SocketException e) {
      return true;
    }
  }

  /** Not looked up: the host may come up, and get its name, later than this one. */
  private InetSocketAddress address() {
    return environment
        .rendezvous()
        .orElseThrow(
            () ->
                new InvalidArgumentException(
                    "fromEnvironment: there is a token, and no variable says where the ranks meet;"
                        + " set WINDLASS_RENDEZVOUS on all of them to HOST:PORT, an address of"
                        + " rank 0's host that all reach, such as 10.0.0.1:7000"));
  }

  private Token token() {
    return Token.fromEnvironment(variables, WindlassException::of)
        .orElseThrow(
            () ->
                new InvalidArgumentException(
                    "fromEnvironment: there is no token, which proves that ranks belong together;"
                        + " set WINDLASS_TOKEN_FILE to a file that only you can read, of 64"
                        + " hexadecimal digits (openssl rand -hex 32), on all of them"));
  }

  /** What tells this job's file from those of others. */
  private String fileJob() {
    String job =
        environment
            .job()
            .orElseThrow(
                () ->
                    new InvalidArgumentException(
                        "fromEnvironment: nothing tells this job from others, by which its ranks"
                            + " find one another; set WINDLASS_JOB to a name of its own on all of"
                            + " them, or WINDLASS_RENDEZVOUS and WINDLASS_TOKEN_FILE"));
    return environment.launcher().name() + "\n" + job;
  }

  /** What tells this job from others that meet at one store. */
  private String storeName() {
    Optional<Token> token = Token.fromEnvironment(variables, WindlassException::of);
    if (environment.job().isEmpty() && token.isEmpty()) {
      throw new InvalidArgumentException(
          "fromEnvironment: nothing tells this job from others that meet at "
              + environment.store().orElseThrow()
              + "; set WINDLASS_JOB to a name of its own, or WINDLASS_TOKEN_FILE, on all ranks");
    }
    String text = environment.launcher().name() + "\n" + environment.job().orElse("");
    return token
        .map(held -> held.name(text))
        .orElseGet(() -> unique(text.getBytes(StandardCharsets.UTF_8)));
  }

  /** The job's name, as short as a member's has to be. */
  private String job() {
    byte[] name = environment.job().orElse("windlass").getBytes(StandardCharsets.UTF_8);
    return name.length <= Member.JOB
        ? new String(name, StandardCharsets.UTF_8)
        : unique(name);
  }

  private static String unique(byte[] name) {
    return UUID.nameUUIDFromBytes(name).toString();
  }
}
