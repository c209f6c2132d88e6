// SPDX-License-Identifier: Apache-2.0
package org.windlass.cli.run;

import java.io.IOException;
import java.net.InetAddress;
import java.net.ServerSocket;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import org.windlass.launch.LaunchStore;

/**
 * Environment variables for ranks on one machine. They contain the ranks' numbers under the names
 * of torchrun and of Windlass, a token, and {@code MASTER_PORT}, a port of the loopback interface
 * for the first rank. They also name the ranks' rendezvous, a store in this process that is open
 * until this is closed.
 */
public final class RankVariables implements AutoCloseable {
  private static final String LOOPBACK = "127.0.0.1";

  private static final String TOKEN_FILE = "WINDLASS_TOKEN_FILE";

  /** If one of these is set, the ranks use its token: two jobs that connect share one. */
  private static final List<String> TOKENS = List.of(TOKEN_FILE, "WINDLASS_TOKEN");

  private final int ranks;
  private final Map<String, String> token;
  private final LaunchStore store;
  private final int masterPort;

  /**
   * Creates the variables of {@code ranks} ranks. {@code MASTER_PORT} is free now, but not
   * reserved.
   *
   * @param token file that is created if this process's environment has no token
   */
  public RankVariables(int ranks, TokenFile token) throws IOException {
    this.ranks = ranks;
    boolean isSet =
        TOKENS.stream().anyMatch(name -> !System.getenv().getOrDefault(name, "").isEmpty());
    this.token = isSet ? Map.of() : Map.of(TOKEN_FILE, token.create().toString());
    Map<String, String> all = new HashMap<>(System.getenv());
    all.putAll(this.token);
    store = LaunchStore.open(all);
    try (ServerSocket master = new ServerSocket(0, 1, InetAddress.getByName(LOOPBACK))) {
      masterPort = master.getLocalPort();
    } catch (IOException e) {
      store.close();
      throw e;
    }
  }

  public Map<String, String> of(int rank) {
    Map<String, String> variables = new LinkedHashMap<>(token);
    for (String family : List.of("", "WINDLASS_")) {
      variables.put(family + "RANK", "" + rank);
      variables.put(family + "WORLD_SIZE", "" + ranks);
      variables.put(family + "LOCAL_RANK", "" + rank);
      variables.put(family + "LOCAL_WORLD_SIZE", "" + ranks);
    }
    variables.put("MASTER_ADDR", LOOPBACK);
    variables.put("MASTER_PORT", "" + masterPort);
    variables.putAll(store.variables());
    return variables;
  }

  @Override
  public void close() {
    store.close();
  }
}
