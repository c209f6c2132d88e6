// SPDX-License-Identifier: Apache-2.0
package org.windlass;

import java.util.Map;
import java.util.Objects;
import org.windlass.internal.Copies;
import org.windlass.internal.store.StoreServer;
import org.windlass.internal.store.Token;

/**
 * A store of this process, at which the ranks of processes meet that it launches, as {@code windlass
 * run} does. It is there as long as this is open, whatever becomes of the ranks: {@link RunningJob}
 * finds the job there also where rank 0's process is stopped. It needs no natives.
 */
public final class LaunchStore implements AutoCloseable {
  private final StoreServer server;

  private LaunchStore(StoreServer server) {
    this.server = server;
  }

  /**
   * Opens one at a free port of the loopback interface.
   *
   * @param variables those of the ranks, which have the token: {@code WINDLASS_TOKEN_FILE} or
   *     {@code WINDLASS_TOKEN}
   * @throws InvalidArgumentException if they have no token, or two
   * @throws ResourceException if the token can't be read, or this process can't listen
   */
  public static LaunchStore open(Map<String, String> variables) {
    Map<String, String> all = Copies.map(variables, "variables");
    Token token =
        Token.fromEnvironment(all, WindlassException::of)
            .orElseThrow(
                () ->
                    new InvalidArgumentException(
                        "LaunchStore: the variables have no token; set WINDLASS_TOKEN_FILE"));
    String version = LaunchStore.class.getPackage().getImplementationVersion();
    return new LaunchStore(
        StoreServer.open(
            StoreServer.loopback(),
            token,
            Objects.requireNonNullElse(version, ""),
            StoreServer.Bounds.defaults(),
            WindlassException::of));
  }

  /** What ranks get beside what {@link #open} was given, so that they meet here. */
  public Map<String, String> variables() {
    String address = server.name();
    return Map.of(
        LaunchEnvironment.RENDEZVOUS, address, LaunchEnvironment.LAUNCHER_STORE, address);
  }

  /** Ends it: ranks that are about to meet are told that it is lost; others go on. Idempotent. */
  @Override
  public void close() {
    server.close();
  }
}
