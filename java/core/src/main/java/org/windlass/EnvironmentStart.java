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
import java.util.function.Consumer;
import java.util.function.Function;
import java.util.stream.IntStream;
import org.jspecify.annotations.Nullable;
import org.windlass.error.DeadlineExceededException;
import org.windlass.error.InvalidArgumentException;
import org.windlass.error.PeerLostException;
import org.windlass.error.ResourceException;
import org.windlass.error.WindlassException;
import org.windlass.internal.Deadline;
import org.windlass.internal.Native;
import org.windlass.internal.Natives;
import org.windlass.internal.rendezvous.AllGather;
import org.windlass.internal.rendezvous.Host;
import org.windlass.internal.rendezvous.JobProcesses;
import org.windlass.internal.rendezvous.OwnStore;
import org.windlass.internal.rendezvous.RendezvousFile;
import org.windlass.internal.rendezvous.Start;
import org.windlass.internal.rendezvous.StoreAllGather;
import org.windlass.internal.store.HostAndPort;
import org.windlass.internal.store.Member;
import org.windlass.internal.store.SocketStore;
import org.windlass.internal.store.Store;
import org.windlass.internal.store.StoreProviders;
import org.windlass.internal.store.StoreServer;
import org.windlass.internal.store.Token;
import org.windlass.launch.LaunchEnvironment;

/**
 * Starts a communicator of processes that a launcher started. Each process has one rank, or the
 * same number of ranks.
 */
final class EnvironmentStart {
  private final Map<String, String> variables;
  private final LaunchEnvironment environment;
  private final List<Integer> own;
  private final int size;
  private final CommunicatorOptions options;
  private final Duration deadline;
  private final Host host;

  /** Store that this process opened for its job, or null. It is closed with the communicator. */
  private @Nullable OwnStore kept;

  EnvironmentStart(
      Map<String, String> variables, int ranks, CommunicatorOptions options, Duration deadline) {
    this.variables = variables;
    this.options = options;
    this.deadline = deadline;
    host = Host.of(variables);
    environment = LaunchEnvironment.required(variables);
    int most = Native.WL_MAX_RANKS / environment.size();
    if (ranks < 1 || ranks > most) {
      throw new InvalidArgumentException(
          "fromEnvironment: ranks is " + ranks + "; each of " + environment.size()
              + " processes has 1 to " + most);
    }
    int first = environment.rank() * ranks;
    own = IntStream.range(first, first + ranks).boxed().toList();
    size = environment.size() * ranks;
  }

  Communicator join() {
    Deadline until = Deadline.of(deadline);
    return started(
        handles(until),
        handles -> Communicator.of(handles[0], options.deadline(), null, "fromEnvironment"),
        communicator -> {
          communicator.keep(kept);
          leaveStart(communicator, until);
        });
  }

  LocalGroup joinAll() {
    Deadline until = Deadline.of(deadline);
    return started(
        handles(until),
        handles -> new LocalGroup(handles, options, "fromEnvironment"),
        group -> {
          group.communicators().get(0).keep(kept);
          group.run(communicator -> leaveStart(communicator, until));
        });
  }

  /**
   * Calls {@code make}, passes its result to {@code begin}, and returns the result of {@code
   * begin}. If either call throws, closes everything that was opened.
   */
  private <T extends AutoCloseable> T started(
      long[] handles, Function<long[], T> make, Consumer<T> begin) {
    AutoCloseable open = kept;
    try {
      T made = make.apply(handles);
      open = made; // which closes the store
      begin.accept(made);
      return made;
    } catch (Throwable e) {
      try {
        if (open != null) {
          open.close();
        }
      } catch (Exception other) {
        e.addSuppressed(other);
      }
      throw e;
    }
  }

  /** Waits for all ranks, so that a restarted rank does not find the store of this start. */
  private static void leaveStart(Communicator communicator, Deadline until) {
    communicator.withDeadline(until.left()).barrier();
  }

  private long[] handles(Deadline until) {
    Natives.require();
    if (environment.size() == 1) {
      return LocalHandles.create(size, options);
    }
    if (environment.store().isPresent()) {
      String address = environment.store().get();
      try (Store store =
          StoreProviders.of(address)
              .connect(address, storeName(), member(), variables, until.left())) {
        return start(allGather(store), until);
      }
    }
    if (environment.rendezvous().isPresent() || environment.tokenVariable().isPresent()) {
      RendezvousFile.Place place = new RendezvousFile.Place(address(), token());
      return environment.rank() > 0 || environment.launcherHasStore()
          ? joinAt(place, until)
          : joinAtOwn(place, until);
    }
    try (RendezvousFile file =
        RendezvousFile.of(fileJob(), "WINDLASS_RENDEZVOUS", variables)) {
      if (environment.rank() > 0) {
        return joinAt(file.await(until.left()), until);
      }
      // Only the file names this store. The store and the file are closed once all ranks have
      // joined.
      RendezvousFile.Place any = new RendezvousFile.Place(StoreServer.loopback(), Token.random());
      try (OwnStore opened = open(any)) {
        file.write(opened.place());
        return joinAt(opened.place(), until);
      }
    }
  }

  /** Opens the job's store in this process, where it stays open, and joins the other ranks. */
  private long[] joinAtOwn(RendezvousFile.Place place, Deadline until) {
    InetSocketAddress known =
        HostAndPort.awaited(
            "fromEnvironment: the rendezvous of the ranks", place.address(), until);
    OwnStore opened = open(new RendezvousFile.Place(known, place.token()));
    try {
      long[] handles = joinAt(opened.place(), until);
      opened.started();
      kept = opened;
      return handles;
    } finally {
      if (kept == null) {
        opened.close();
      }
    }
  }

  private long[] joinAt(RendezvousFile.Place place, Deadline until) {
    try {
      while (true) {
        try (Store store = connected(place, until.left())) {
          StoreAllGather all = allGather(store);
          try {
            JobProcesses.tell(store, own.get(0), until.left());
            return start(all, until);
          } catch (PeerLostException e) {
            boolean isOfThisStart =
                environment.rank() == 0
                    || environment.launcherHasStore()
                    || all.isOpen()
                    || !e.faultyRanks().isEmpty();
            if (isOfThisStart || until.isOver()) {
              throw e;
            }
            // The store belonged to an earlier start, which has closed it.
          }
        }
      }
    } catch (DeadlineExceededException | PeerLostException e) {
      boolean isOwn = environment.rank() == 0 && !environment.launcherHasStore();
      if (isOwn || !e.faultyRanks().isEmpty()) {
        throw e;
      }
      throw storeFailure(e);
    }
  }

  /** Connects to a store, and waits until it is open. Rank 0 or the launcher opens it. */
  private Store connected(RendezvousFile.Place place, Duration deadline) {
    boolean isOpened = environment.launcherHasStore();
    return SocketStore.connect(place.address(), place.token(), member(), isOpened, deadline);
  }

  private WindlassException storeFailure(WindlassException e) {
    boolean isLaunchers = environment.launcherHasStore();
    String whose =
        isLaunchers
            ? "waiting for the launcher, which has the rendezvous store: "
            : "waiting for rank 0, whose process has the rendezvous store: ";
    String why = e.getCause() instanceof WindlassException own ? own.getMessage() : e.getMessage();
    List<Integer> faultyRanks = isLaunchers ? List.of() : List.of(0);
    return WindlassException.of(e.code().number(), whose + why, e, "", faultyRanks);
  }

  private Member member() {
    return new Member(job(), own.get(0), size, Native.wl_version());
  }

  private StoreAllGather allGather(Store store) {
    return new StoreAllGather(store, "start", size, null);
  }

  private long[] start(AllGather all, Deadline until) {
    return Start.join(all, own, size, options.config(), host, until.left());
  }

  private OwnStore open(RendezvousFile.Place place) {
    try {
      return new OwnStore(place, Native.wl_version());
    } catch (ResourceException e) {
      String given = variables.getOrDefault("WINDLASS_RENDEZVOUS", "");
      throw new ResourceException(
          "rank 0: " + e.getMessage()
              + (isOfThisHost(place.address().getAddress())
                  ? "; another process that has rank 0 too, or another program, may listen there"
                  : "; this host has no such address: start rank 0 on the host that "
                      + (given.isEmpty() ? "MASTER_ADDR" : "WINDLASS_RENDEZVOUS")
                      + " names, or have it name this one, on all ranks"),
          e);
    }
  }

  private static boolean isOfThisHost(InetAddress address) {
    try {
      return address.isLoopbackAddress()
          || address.isAnyLocalAddress()
          || NetworkInterface.getByInetAddress(address) != null;
    } catch (SocketException e) {
      return true;
    }
  }

  /**
   * Returns the rendezvous address without looking up its host, which may get its DNS entry later.
   */
  private InetSocketAddress address() {
    return required(
        environment.rendezvous(),
        "fromEnvironment: there is a token, and no variable names their rendezvous; set"
            + " WINDLASS_RENDEZVOUS on all of them to HOST:PORT, an address of rank 0's host that all"
            + " reach, such as 10.0.0.1:7000");
  }

  private Token token() {
    return Token.required(
        variables,
        "fromEnvironment: there is no token, which proves that ranks belong together; set"
            + " WINDLASS_TOKEN_FILE to a file that only you can read, of 64 hexadecimal digits"
            + " (openssl rand -hex 32), on all of them");
  }

  private static <T> T required(Optional<T> given, String why) {
    return given.orElseThrow(() -> new InvalidArgumentException(why));
  }

  private String fileJob() {
    String job =
        required(
            environment.job(),
            "fromEnvironment: nothing distinguishes this job from others, so its ranks can't find"
                + " one another; set WINDLASS_JOB to a name of its own on all ranks, or"
                + " WINDLASS_RENDEZVOUS"
                + " and WINDLASS_TOKEN_FILE");
    return environment.launcher().name() + "\n" + job;
  }

  private String storeName() {
    Optional<Token> token = Token.fromEnvironment(variables);
    if (environment.job().isEmpty() && token.isEmpty()) {
      throw new InvalidArgumentException(
          "fromEnvironment: nothing distinguishes this job from others at "
              + environment.store().orElseThrow()
              + "; set WINDLASS_JOB to a name of its own, or WINDLASS_TOKEN_FILE, on all ranks");
    }
    String text = environment.launcher().name() + "\n" + environment.job().orElse("");
    return token
        .map(held -> held.name(text))
        .orElseGet(() -> unique(text.getBytes(StandardCharsets.UTF_8)));
  }

  /** Returns the job's name. A name that exceeds {@link Member#JOB} bytes becomes a hash of it. */
  private String job() {
    byte[] name = environment.job().orElse("windlass").getBytes(StandardCharsets.UTF_8);
    return name.length <= Member.JOB ? new String(name, StandardCharsets.UTF_8) : unique(name);
  }

  private static String unique(byte[] name) {
    return UUID.nameUUIDFromBytes(name).toString();
  }
}
