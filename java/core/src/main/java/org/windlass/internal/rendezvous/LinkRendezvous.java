// SPDX-License-Identifier: Apache-2.0
package org.windlass.internal.rendezvous;

import java.net.InetSocketAddress;
import java.time.Duration;
import java.util.Map;
import java.util.Objects;
import java.util.regex.Pattern;
import org.jspecify.annotations.Nullable;
import org.windlass.error.InvalidArgumentException;
import org.windlass.internal.Deadline;
import org.windlass.internal.store.HostAndPort;
import org.windlass.internal.store.Member;
import org.windlass.internal.store.SocketStore;
import org.windlass.internal.store.Store;
import org.windlass.internal.store.StoreProvider;
import org.windlass.internal.store.StoreProviders;
import org.windlass.internal.store.StoreServer;
import org.windlass.internal.store.Token;

/**
 * The store where jobs find each other. {@link #VARIABLE} names it in one of three forms:
 * HOST:PORT, with a token in the environment; an address of a {@link StoreProvider}; or a name, for
 * jobs of one user on one host. If no other process has opened the store, this one does.
 */
public final class LinkRendezvous implements AutoCloseable {
  public static final String VARIABLE = "WINDLASS_LINK_RENDEZVOUS";

  private static final String OLD_VARIABLE = "WINDLASS_MEETING";
  private static final String JOBS = "jobs";
  private static final Pattern NAME = Pattern.compile("[^\\p{Cntrl}:]{1,255}");

  /**
   * Time limit for an answer of the owner of a provided store. At most half of the remaining time
   * is used.
   */
  private static final Duration OWNER_LIMIT = Duration.ofSeconds(3);

  private final Map<String, String> environment;
  private final String library;
  private final @Nullable String provided; // address of a provider's store; null for another form
  private final @Nullable String name; // of the store among those at that address
  private final @Nullable RendezvousFile file; // null if the variable has an address
  private RendezvousFile.@Nullable Place place; // of a server; null before a file has named it
  private @Nullable OwnStore server; // null if another process has opened the store
  private volatile @Nullable Store owned; // connection of the owner; null if it is another process

  /**
   * Reads the environment.
   *
   * @param library the version of this library
   * @throws WindlassException InvalidArgument if the variable is not set or malformed, or what
   *     {@link RendezvousFile} throws
   */
  public LinkRendezvous(Map<String, String> environment, String library) {
    this.environment = environment;
    this.library = library;
    String setting = setting(environment);
    if (setting.isEmpty()) {
      throw new InvalidArgumentException(
          VARIABLE + " is not set, so it is unknown where jobs connect; set it to the same name"
              + " in all jobs, such as " + VARIABLE + "=demo, or to HOST:PORT with"
              + " WINDLASS_TOKEN_FILE");
    }
    check(setting);
    boolean isProvided = StoreProviders.address(VARIABLE, setting).isPresent();
    boolean isAddress = !isProvided && setting.contains(":");
    provided = isProvided ? setting : null;
    name = isProvided ? name(setting) : null;
    place = isAddress ? address(setting) : null;
    file =
        isProvided || isAddress
            ? null
            : RendezvousFile.of("jobs\n" + setting, VARIABLE, environment);
  }

  /**
   * Returns the value of {@link #VARIABLE}; empty if it is not set. Throws InvalidArgumentException
   * if only the variable's earlier name is set, which would have no effect.
   */
  public static String setting(Map<String, String> environment) {
    if (!environment.getOrDefault(OLD_VARIABLE, "").isEmpty()) {
      throw new InvalidArgumentException(
          OLD_VARIABLE + " is set, whose name is now " + VARIABLE + "; set that instead");
    }
    return environment.getOrDefault(VARIABLE, "");
  }

  /** Throws InvalidArgument for a malformed value of {@link #VARIABLE}. Looks up no host. */
  public static void check(String setting) {
    if (StoreProviders.address(VARIABLE, setting).isPresent()) {
      return;
    }
    if (setting.contains(":")) {
      HostAndPort.parse(VARIABLE, setting, "");
    } else if (!NAME.matcher(setting).matches()) {
      throw new InvalidArgumentException(
          VARIABLE + " has " + setting.length() + " characters, or some that do not print; it is"
              + " HOST:PORT, an etcd:// address, or a name of at most 255 that do");
    }
  }

  /**
   * Returns the name of the store. All users with the same token share a store, and so do all users
   * without a token.
   */
  private String name(String provided) {
    StoreProviders.of(provided); // throws if there is none
    return Token.fromEnvironment(environment).map(token -> token.name(JOBS)).orElse(JOBS);
  }

  private RendezvousFile.Place address(String setting) {
    InetSocketAddress address =
        HostAndPort.resolved(
            VARIABLE + " is '" + setting + "'", HostAndPort.parse(VARIABLE, setting, ""));
    Token token =
        Token.required(
            environment,
            VARIABLE + " is an address, and there is no token, which proves that jobs belong"
                + " together; set WINDLASS_TOKEN_FILE to one file for all of them, of 64"
                + " hexadecimal digits (openssl rand -hex 32) that only you can read, or "
                + VARIABLE + " to a name");
    return new RendezvousFile.Place(address, token);
  }

  /**
   * Finds the store. Opens it if no running process has it.
   *
   * @throws org.windlass.error.DeadlineExceededException if the owner of a provided store is still
   *     unknown; it may have ended, or may be about to own the store
   */
  public void find(Duration deadline) {
    if (provided != null) {
      own(Deadline.of(deadline));
    } else if (file != null) {
      place = file.findOr(this::openAnywhere, deadline);
    } else if (server == null) {
      try {
        server = new OwnStore(Objects.requireNonNull(place), library);
      } catch (RuntimeException e) {
        // Another process may have the address, or the host may be another one. Connecting shows
        // which.
      }
    }
  }

  public Store connect(Member member, Duration deadline) {
    if (provided != null) {
      return connectProvided(Member.observer(member.job(), library), deadline);
    }
    RendezvousFile.Place known = Objects.requireNonNull(place);
    return SocketStore.connect(known.address(), known.token(), member, deadline);
  }

  private Store connectProvided(Member member, Duration deadline) {
    String at = Objects.requireNonNull(provided);
    return StoreProviders.of(at)
        .connect(at, Objects.requireNonNull(name), member, environment, deadline);
  }

  /** Makes this process the owner of the provided store if no other process owns it. */
  private void own(Deadline until) {
    Store last = owned;
    if (last != null && !succeeds(() -> last.get(JOBS, ownerLimit(until)))) {
      close();
    }
    Member observer = Member.observer(JOBS, library);
    if (owned == null && !succeeds(() -> connectProvided(observer, ownerLimit(until)).close())) {
      owned = connectProvided(new Member(JOBS, 0, 1, library), until.left());
    }
  }

  private static Duration ownerLimit(Deadline until) {
    long halfNs = Math.max(1, until.leftNs() / 2);
    return Duration.ofNanos(Math.min(halfNs, OWNER_LIMIT.toNanos()));
  }

  private static boolean succeeds(Runnable call) {
    try {
      call.run();
      return true;
    } catch (RuntimeException e) {
      return false; // the calls that follow report why
    }
  }

  private RendezvousFile.Place openAnywhere() {
    close();
    RendezvousFile.Place any = new RendezvousFile.Place(StoreServer.loopback(), Token.random());
    server = new OwnStore(any, library);
    return server.place();
  }

  /** Closes the store if this process has opened it; all members then lose it. Idempotent. */
  @Override
  public synchronized void close() {
    Store last = owned;
    owned = null;
    if (last != null) {
      last.close();
    }
    if (file != null) {
      file.close();
    }
    if (server != null) {
      server.close();
      server = null;
    }
  }
}
