// SPDX-License-Identifier: Apache-2.0
package org.windlass.cli.run;

import java.io.IOException;
import java.net.InetAddress;
import java.net.ServerSocket;
import java.nio.file.Files;
import java.nio.file.Path;
import java.security.SecureRandom;
import java.util.HashMap;
import java.util.HexFormat;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import org.windlass.checkpoint.FileFault;
import org.windlass.launch.LaunchStore;

/**
 * Environment variables for ranks on one machine. They contain the ranks' numbers under the names
 * of torchrun and of Windlass, and a token. {@code MASTER_PORT} is a port of the loopback interface
 * for rank 0's own use. The variables also name the store where the ranks find each other. The
 * store runs in this process until this object is closed.
 */
public final class RankVariables implements AutoCloseable {
  private static final String LOOPBACK = "127.0.0.1";

  private static final String TOKEN_FILE = "WINDLASS_TOKEN_FILE";

  /** Number of random bytes of a token. The file has two hexadecimal digits for each. */
  private static final int TOKEN_BYTES = 32;

  /** If one of these is set, ranks use its token. Two jobs that connect need the same token. */
  private static final List<String> TOKENS = List.of(TOKEN_FILE, "WINDLASS_TOKEN");

  private final int ranks;
  private final Map<String, String> token;
  private final LaunchStore store;
  private final int masterPort;

  /**
   * Creates the variables of {@code ranks} ranks. {@code MASTER_PORT} is free now, but not
   * reserved.
   *
   * @param folder holds a file with a token if this process's environment has none
   */
  public RankVariables(int ranks, RunFolder folder) throws IOException {
    this.ranks = ranks;
    boolean isSet =
        TOKENS.stream().anyMatch(name -> !System.getenv().getOrDefault(name, "").isEmpty());
    this.token = isSet ? Map.of() : Map.of(TOKEN_FILE, newToken(folder).toString());
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

  private static Path newToken(RunFolder folder) {
    byte[] token = new byte[TOKEN_BYTES];
    new SecureRandom().nextBytes(token);
    try {
      return Files.writeString(
          folder.newFile("token"), HexFormat.of().formatHex(token) + "\n");
    } catch (IOException fault) {
      throw FileFault.writingFolder(Path.of(System.getProperty("java.io.tmpdir")), fault);
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
