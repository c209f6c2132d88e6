// SPDX-License-Identifier: Apache-2.0
package org.windlass.internal.rendezvous;

import java.net.InetSocketAddress;
import java.time.Duration;
import java.util.Map;
import java.util.Objects;
import java.util.Optional;
import java.util.regex.Pattern;
import org.windlass.internal.FailureMaker;
import org.windlass.internal.Native;
import org.windlass.internal.store.HostAndPort;
import org.windlass.internal.store.StoreProvider;
import org.windlass.internal.store.StoreProviders;
import org.windlass.internal.store.StoreServer;
import org.windlass.internal.store.Token;

/**
 * The store at which jobs meet, as the environment names it: found where another process has it,
 * opened by this one where none has. {@link #VARIABLE} is its address, HOST:PORT, and the token is
 * the environment's; or that of a {@link StoreProvider}; or it is a name, by which jobs of one user
 * find one another on one host.
 */
public final class MeetingStore implements AutoCloseable {
  /** The environment variable that has the address or the name. */
  public static final String VARIABLE = "WINDLASS_MEETING";

  private static final String JOBS = "jobs";
  private static final Pattern NAME = Pattern.compile("[^\\p{Cntrl}:]{1,255}");

  private final String library;
  private final FailureMaker failures;

  /** Where it is, and its token; null where it has a name, or is another's. */
  private final MeetingFile.Place named;

  /** By which others find it; null where it has an address. */
  private final MeetingFile file;

  /** Null where it is not a provider's. */
  private final ProvidedMeeting provided;

  /** Null where another process has it. */
  private StoreServer server;

  /**
   * @param environment says where, and which token
   * @param library the version of this library, as errors name it
   * @param failures makes what this and all calls throw. Here: InvalidArgument where the
   *     environment says nothing, or something else; what {@link MeetingFile} does
   */
  public MeetingStore(Map<String, String> environment, String library, FailureMaker failures) {
    this.library = library;
    this.failures = Objects.requireNonNull(failures, "failures");
    String setting = environment.getOrDefault(VARIABLE, "");
    if (setting.isEmpty()) {
      throw failures.make(
          Native.WL_INVALID_ARGUMENT,
          VARIABLE
              + " is not set, and nothing else says where jobs meet; set it to one name for all of"
              + " them, such as " + VARIABLE + "=demo, or to HOST:PORT with WINDLASS_TOKEN_FILE");
    }
    check(setting, failures);
    Optional<String> address = StoreProviders.address(VARIABLE, setting, failures);
    if (address.isPresent()) {
      named = null;
      file = null;
      provided =
          new ProvidedMeeting(place(address.get(), environment), environment, library, failures);
    } else if (setting.contains(":")) {
      named = new MeetingFile.Place(resolved(setting), token(environment));
      file = null;
      provided = null;
    } else {
      named = null;
      file = MeetingFile.ofJobs(setting, environment, failures);
      provided = null;
    }
  }

  /** InvalidArgument for a value of {@link #VARIABLE} that says nothing; looks nothing up. */
  public static void check(String setting, FailureMaker failures) {
    if (StoreProviders.address(VARIABLE, setting, failures).isPresent()) {
      return;
    }
    if (setting.contains(":")) {
      HostAndPort.parse(VARIABLE, setting, "", failures);
    } else if (!NAME.matcher(setting).matches()) {
      throw failures.make(
          Native.WL_INVALID_ARGUMENT,
          VARIABLE
              + " has "
              + setting.length()
              + " characters, or some that do not print; it is HOST:PORT, an etcd:// address, or a"
              + " name of at most 255 that do");
    }
  }

  private InetSocketAddress resolved(String setting) {
    return HostAndPort.resolved(
        VARIABLE + " is '" + setting + "'",
        HostAndPort.parse(VARIABLE, setting, "", failures),
        failures);
  }

  /** A token, where there is one, tells those who have it from others at that address. */
  private MeetingPlace.Provided place(String setting, Map<String, String> environment) {
    StoreProviders.of(setting, failures);
    String name =
        Token.fromEnvironment(environment, failures).map(held -> held.name(JOBS)).orElse(JOBS);
    return new MeetingPlace.Provided(setting, name);
  }

  private Token token(Map<String, String> environment) {
    return Token.fromEnvironment(environment, failures)
        .orElseThrow(
            () ->
                failures.make(
                    Native.WL_INVALID_ARGUMENT,
                    VARIABLE
                        + " is an address, and there is no token, which proves that jobs belong"
                        + " together; set WINDLASS_TOKEN_FILE to one file for all of them, of 64"
                        + " hexadecimal digits (openssl rand -hex 32) that only you can read, or "
                        + VARIABLE
                        + " to a name"));
  }

  /** Where it is now. It is opened here where no process that lives has it. */
  public MeetingPlace find(Duration deadline) {
    if (provided != null) {
      return provided.find(deadline);
    }
    if (file != null) {
      return new MeetingPlace.Socket(file.findOr(this::openAnywhere, deadline));
    }
    if (server == null) {
      try {
        server = open(named);
      } catch (RuntimeException e) {
        // Another process listens there, or it is another host: who connects finds out.
      }
    }
    return new MeetingPlace.Socket(named);
  }

  private MeetingFile.Place openAnywhere() {
    close();
    MeetingFile.Place place = new MeetingFile.Place(StoreServer.loopback(), Token.random());
    server = open(place);
    return new MeetingFile.Place(server.address(), place.token());
  }

  private StoreServer open(MeetingFile.Place place) {
    return StoreServer.open(
        place.address(), place.token(), library, StoreServer.Bounds.defaults(), failures);
  }

  /** Ends it, where this process has it: every member loses it. Idempotent. */
  @Override
  public synchronized void close() {
    if (provided != null) {
      provided.close();
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
