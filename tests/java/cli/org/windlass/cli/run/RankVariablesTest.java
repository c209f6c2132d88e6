// SPDX-License-Identifier: Apache-2.0
package org.windlass.cli.run;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.io.IOException;
import java.net.InetAddress;
import java.net.ServerSocket;
import java.net.Socket;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.attribute.PosixFilePermissions;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.windlass.error.AbortedException;
import org.windlass.launch.LaunchEnvironment;

/** What ranks of {@code windlass run} are told. */
class RankVariablesTest {
  private final RunFolder folder = new RunFolder();

  private final List<RankVariables> open = new ArrayList<>();

  private RankVariables variables(int ranks) throws IOException {
    RankVariables variables = new RankVariables(ranks, folder);
    open.add(variables);
    return variables;
  }

  @AfterEach
  void nothingIsLeft() throws IOException {
    open.forEach(RankVariables::close);
    folder.close();
  }

  @Test
  void aRankReadsWhatItWasTold() throws IOException {
    RankVariables variables = variables(3);
    for (int rank = 0; rank < 3; rank++) {
      LaunchEnvironment read = LaunchEnvironment.of(variables.of(rank)).orElseThrow();
      assertThat(read.launcher()).isEqualTo(LaunchEnvironment.Launcher.WINDLASS);
      assertThat(read.rank()).isEqualTo(rank);
      assertThat(read.size()).isEqualTo(3);
      assertThat(read.localRank()).hasValue(rank);
      assertThat(read.localSize()).hasValue(3);
      assertThat(read.rendezvous().orElseThrow().getHostString()).isEqualTo("127.0.0.1");
      assertThat(read.launcherHasStore()).isTrue();
    }
  }

  @Test
  void torchrunsNamesAloneSayTheSame() throws IOException {
    Map<String, String> told = new HashMap<>(variables(2).of(1));
    LaunchEnvironment all = LaunchEnvironment.of(told).orElseThrow();
    told.keySet().removeIf(name -> name.startsWith("WINDLASS_"));
    assertThat(told)
        .containsOnlyKeys(
            "RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT");
    LaunchEnvironment torchrun = LaunchEnvironment.of(told).orElseThrow();
    assertThat(torchrun.launcher()).isEqualTo(LaunchEnvironment.Launcher.TORCHRUN);
    assertThat(torchrun.rank()).isEqualTo(all.rank());
    assertThat(torchrun.size()).isEqualTo(all.size());
  }

  @Test
  void theMasterPortCanBeServedAtAndTheStoreIsThere() throws IOException {
    Map<String, String> told = variables(2).of(0);
    InetAddress host = InetAddress.getByName(told.get("MASTER_ADDR"));
    int port = LaunchEnvironment.of(told).orElseThrow().rendezvous().orElseThrow().getPort();
    try (ServerSocket master = new ServerSocket(Integer.parseInt(told.get("MASTER_PORT")), 1, host);
        Socket store = new Socket(host, port)) {
      assertThat(store.isConnected()).isTrue();
      assertThat(master.getLocalPort()).isNotEqualTo(port);
    }
  }

  private static Path token(RunFolder folder) throws IOException {
    try (RankVariables variables = new RankVariables(1, folder)) {
      return Path.of(variables.of(0).get("WINDLASS_TOKEN_FILE"));
    }
  }

  @Test
  void aTokenIsItsOwnersAndGoesAtTheEnd() throws IOException {
    Path path;
    String digits;
    try (RunFolder own = new RunFolder()) {
      path = token(own);
      digits = Files.readString(path);
      assertThat(digits).matches("[0-9a-f]{64}\n");
      assertThat(PosixFilePermissions.toString(Files.getPosixFilePermissions(path)))
          .isEqualTo("rw-------");
    }
    assertThat(path).doesNotExist();
    try (RunFolder other = new RunFolder()) {
      assertThat(Files.readString(token(other))).isNotEqualTo(digits);
    }
  }

  @Test
  void aTokenIsNotMadeOnceItsEndHasCome() throws IOException {
    RunFolder closed = new RunFolder();
    closed.close();
    assertThatThrownBy(() -> token(closed)).isInstanceOf(AbortedException.class);
  }
}
