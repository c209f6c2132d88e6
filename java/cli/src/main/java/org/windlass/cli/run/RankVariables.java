// SPDX-License-Identifier: Apache-2.0
package org.windlass.cli.run;

import java.io.IOException;
import java.net.InetAddress;
import java.net.ServerSocket;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;

/**
 * The environment variables that ranks of one machine get: their numbers under the names that
 * torchrun gives them and under Windlass's own, and two ports of the loopback interface that the
 * first rank may serve at: {@code MASTER_PORT}, and that of {@code WINDLASS_RENDEZVOUS}.
 */
public final class RankVariables {
  private static final String LOOPBACK = "127.0.0.1";

  private final int ranks;
  private final int masterPort;
  private final int meetingPort;

  /** The variables of {@code ranks} ranks; both ports are free now, and nobody holds them. */
  public RankVariables(int ranks) throws IOException {
    this.ranks = ranks;
    InetAddress loopback = InetAddress.getByName(LOOPBACK);
    try (ServerSocket master = new ServerSocket(0, 1, loopback);
        ServerSocket meeting = new ServerSocket(0, 1, loopback)) {
      masterPort = master.getLocalPort();
      meetingPort = meeting.getLocalPort();
    }
  }

  /** Those of one rank. */
  public Map<String, String> of(int rank) {
    Map<String, String> variables = new LinkedHashMap<>();
    for (String family : List.of("", "WINDLASS_")) {
      variables.put(family + "RANK", "" + rank);
      variables.put(family + "WORLD_SIZE", "" + ranks);
      variables.put(family + "LOCAL_RANK", "" + rank);
      variables.put(family + "LOCAL_WORLD_SIZE", "" + ranks);
    }
    variables.put("MASTER_ADDR", LOOPBACK);
    variables.put("MASTER_PORT", "" + masterPort);
    variables.put("WINDLASS_RENDEZVOUS", LOOPBACK + ":" + meetingPort);
    return variables;
  }
}
