// SPDX-License-Identifier: Apache-2.0
package org.windlass.launch;

import java.util.Map;
import java.util.Objects;
import org.windlass.error.InvalidArgumentException;
import org.windlass.error.ResourceException;
import org.windlass.internal.Copies;
import org.windlass.internal.store.StoreServer;
import org.windlass.internal.store.Token;

/**
 * A store that a launching process such as {@code windlass run} opens, so that the ranks find each
 * other. The store stays open until the launching process closes it, even if ranks stop or end. So
 * {@link org.windlass.report.RunningJob} finds the job there even if rank 0's process is stopped.
 * It does not need the native library.
 */
public final class LaunchStore implements AutoCloseable {
  private final StoreServer server;

  private LaunchStore(StoreServer server) {
    this.server = server;
  }

  /**
   * Opens a store at a free port of the loopback interface.
   *
   * @param variables the ranks' variables, which have the token: {@code WINDLASS_TOKEN_FILE} or
   *     {@code WINDLASS_TOKEN}
   * @throws InvalidArgumentException if they have no token, or two
   * @throws ResourceException if the token can't be read, or this process can't listen
   */
  public static LaunchStore open(Map<String, String> variables) {
    Token token =
        Token.required(
            Copies.map(variables, "variables"),
            "LaunchStore: the variables have no token; set WINDLASS_TOKEN_FILE");
    String version = LaunchStore.class.getPackage().getImplementationVersion();
    return new LaunchStore(
        StoreServer.open(
            StoreServer.loopback(),
            token,
            Objects.requireNonNullElse(version, ""),
            StoreServer.Bounds.defaults()));
  }

  /**
   * Returns the variables that ranks need to join here. Set them in addition to the variables that
   * were passed to {@link #open}.
   */
  public Map<String, String> variables() {
    String address = server.name();
    return Map.of(
        LaunchEnvironment.RENDEZVOUS, address, LaunchEnvironment.LAUNCHER_STORE, address);
  }

  /** Closes the store. Ranks that are starting fail; other ranks continue. Idempotent. */
  @Override
  public void close() {
    server.close();
  }
}
