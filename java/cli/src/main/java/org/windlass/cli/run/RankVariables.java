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
 * The environment variables that ranks of one machine get: their numbers under the names that
 * torchrun gives them and under Windlass's own, a port of the loopback interface that the first
 * rank may serve at, {@code MASTER_PORT}, a token, and the rendezvous of the ranks, which is a
 * store of this process: open until this is closed.
 */
public final class RankVariables implements AutoCloseable {
  private static final String LOOPBACK = "127.0.0.1";

  private static final String TOKEN_FILE = "WINDLASS_TOKEN_FILE";

  /** Where one of them is set, the ranks have a token, as two jobs that connect share one. */
  private static final List<String> TOKENS = List.of(TOKEN_FILE, "WINDLASS_TOKEN");

  private final int ranks;
  private final Map<String, String> token;
  private final LaunchStore store;
  private final int masterPort;

  /**
   * The variables of {@code ranks} ranks; {@code MASTER_PORT} is free now, and nobody holds it.
   *
   * @param token is made where this process's environment has none for them
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

  /** Those of one rank, which come on top of this process's. */
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
