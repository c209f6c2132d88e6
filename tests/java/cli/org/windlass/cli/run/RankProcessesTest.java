// SPDX-License-Identifier: Apache-2.0
package org.windlass.cli.run;

import static org.assertj.core.api.Assertions.assertThat;

import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.io.OutputStream;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import java.util.stream.IntStream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;

/** Ranks that are shells: how they end, together, and what of theirs is passed on. */
@Timeout(120)
class RankProcessesTest {
  /** Waits for what another rank says by {@code touch ready}. */
  private static final String AWAIT_READY = "while [ ! -e ready ]; do sleep 0.01; done; ";

  private static final String AWAIT_PID = "while [ ! -s pid ]; do sleep 0.01; done; ";

  @TempDir Path folder;

  private Duration grace = Duration.ofSeconds(20);
  private final ByteArrayOutputStream out = new ByteArrayOutputStream();
  private final ByteArrayOutputStream err = new ByteArrayOutputStream();

  private RankProcesses started(OutputStream to, int ranks, String script) throws IOException {
    RankProcesses processes = new RankProcesses(0, to, err, grace);
    for (int rank = 0; rank < ranks; rank++) {
      Map<String, String> variables = Map.of("RANK", "" + rank, "FOLDER", folder.toString());
      processes.start(List.of("sh", "-c", "cd \"$FOLDER\"; " + script), variables);
    }
    return processes;
  }

  private RankProcesses started(int ranks, String script) throws IOException {
    return started(out, ranks, script);
  }

  private String out() {
    return out.toString(StandardCharsets.UTF_8);
  }

  private String err() {
    return err.toString(StandardCharsets.UTF_8);
  }

  /** The process whose number a rank has written there, once it has. */
  private long pid(String file) throws IOException, InterruptedException {
    Path path = folder.resolve(file);
    while (!Files.exists(path) || !Files.readString(path).endsWith("\n")) {
      Thread.sleep(5);
    }
    return Long.parseLong(Files.readString(path).strip());
  }

  /** Whether a process runs; where nobody asks after one that has ended, it stays as a zombie. */
  private static boolean runs(long pid) throws IOException {
    Path stat = Path.of("/proc/" + pid + "/stat");
    try {
      return !Files.readString(stat, StandardCharsets.ISO_8859_1).matches("(?s).*\\) Z .*");
    } catch (IOException gone) {
      assertThat(stat).doesNotExist();
      return false;
    }
  }

  @Test
  void allEndWellAndAllTheirLinesAreThere() throws Exception {
    try (RankProcesses processes = started(3, "echo out $RANK; echo err $RANK >&2; printf $RANK")) {
      assertThat(processes.awaitEnd()).isEmpty();
      processes.finishOutput();
      assertThat(processes.output().loss()).isEmpty();
    }
    assertThat(out().lines())
        .containsExactlyInAnyOrder(
            "[0] out 0", "[1] out 1", "[2] out 2", "[0] 0", "[1] 1", "[2] 2");
    assertThat(err().lines()).containsExactlyInAnyOrder("[0] err 0", "[1] err 1", "[2] err 2");
  }

  @Test
  void muchOutputOfManyIsWhole() throws Exception {
    String script = "i=0; while [ $i -lt 2000 ]; do echo $RANK $i; i=$((i + 1)); done";
    try (RankProcesses processes = started(8, script)) {
      assertThat(processes.awaitEnd()).isEmpty();
      processes.finishOutput();
    }
    List<String> lines = out().lines().toList();
    assertThat(lines).hasSize(16_000);
    for (int rank = 0; rank < 8; rank++) {
      String start = "[" + rank + "] " + rank + " ";
      assertThat(lines.stream().filter(line -> line.startsWith(start)))
          .containsExactlyElementsOf(IntStream.range(0, 2000).mapToObj(i -> start + i).toList());
    }
  }

  @Test
  void theFirstFailureIsToldAndEndsTheOthers() throws Exception {
    String script = "[ $RANK != 1 ] || exit 7; echo $$ >pid$RANK; exec sleep 60";
    try (RankProcesses processes = started(3, script)) {
      Optional<RankProcesses.Failure> failure = processes.awaitEnd();
      assertThat(failure.orElseThrow().rank()).isEqualTo(1);
      assertThat(failure.orElseThrow().status()).isEqualTo(7);
      long first = pid("pid0");
      long third = pid("pid2");
      assertThat(runs(first)).isTrue();
      processes.end();
      assertThat(runs(first)).isFalse();
      assertThat(runs(third)).isFalse();
    }
  }

  @Test
  void aSignalIsAStatusAsInShells() throws Exception {
    try (RankProcesses processes = started(1, "kill -9 $$")) {
      assertThat(processes.awaitEnd().orElseThrow().status()).isEqualTo(128 + 9);
    }
  }

  @Test
  void whatRanksHaveStartedEndsToo() throws Exception {
    String script =
        "if [ $RANK = 1 ]; then " + AWAIT_READY + "exit 3; fi;"
            + " sh -c 'sleep 60 & echo $! >pid; touch ready; wait' & wait";
    try (RankProcesses processes = started(2, script)) {
      assertThat(processes.awaitEnd().orElseThrow().status()).isEqualTo(3);
      assertThat(runs(pid("pid"))).isTrue();
    }
    assertThat(runs(pid("pid"))).isFalse();
  }

  /** Else one that waits for what it has started could go on behind that, and end on its own. */
  @Test
  void aRankIsToldBeforeWhatItHasStarted() throws Exception {
    int ranks = 24;
    String script =
        "trap 'echo told; exit' TERM; sleep 60 & echo $! >pid$RANK; wait; echo went on";
    try (RankProcesses processes = started(ranks, script)) {
      for (int rank = 0; rank < ranks; rank++) {
        pid("pid" + rank);
      }
      processes.end();
    }
    assertThat(out().lines())
        .containsExactlyInAnyOrderElementsOf(
            IntStream.range(0, ranks).mapToObj(rank -> "[" + rank + "] told").toList());
  }

  @Test
  void whatDoesNotHeedTheSignalIsKilled() throws Exception {
    grace = Duration.ofSeconds(1);
    String script =
        "if [ $RANK = 1 ]; then " + AWAIT_READY + "exit 3; fi;"
            + " trap 'echo asked' TERM; echo $$ >pid; touch ready; while :; do sleep 0.05; done";
    try (RankProcesses processes = started(2, script)) {
      assertThat(processes.awaitEnd().orElseThrow().status()).isEqualTo(3);
      long start = System.nanoTime();
      processes.end();
      assertThat(Duration.ofNanos(System.nanoTime() - start))
          .isGreaterThanOrEqualTo(grace);
    }
    assertThat(runs(pid("pid"))).isFalse();
    assertThat(out()).contains("[0] asked");
  }

  @Test
  void aStoppedRankIsKilled() throws Exception {
    grace = Duration.ofSeconds(1);
    String script =
        "if [ $RANK = 1 ]; then " + AWAIT_READY + "exit 3; fi;"
            + " echo $$ >pid; touch ready; kill -STOP $$";
    try (RankProcesses processes = started(2, script)) {
      assertThat(processes.awaitEnd().orElseThrow().status()).isEqualTo(3);
    }
    assertThat(runs(pid("pid"))).isFalse();
  }

  @Test
  void aStoppedRankIsNotWaitedFor() throws Exception {
    grace = Duration.ofDays(1);
    try (RankProcesses processes = started(2, "[ $RANK = 0 ] || kill -STOP $$; exit 3")) {
      assertThat(processes.awaitEnd().orElseThrow().rank()).isZero();
      assertThat(processes.failures(Duration.ofDays(1)))
          .extracting(RankProcesses.Failure::rank)
          .containsExactly(0);
    }
  }

  @Test
  void stoppedRanksAreNamedFromTimeToTimeOnceAllOthersHaveEnded() throws Exception {
    String script = "echo $$ >pid$RANK; [ $RANK = 0 ] || kill -STOP $$; true";
    try (RankProcesses processes = started(3, script)) {
      while (processes.stopped().size() < 2) {
        Thread.sleep(5);
      }
      List<RankProcesses.Rank> both =
          List.of(
              new RankProcesses.Rank(1, pid("pid1")), new RankProcesses.Rank(2, pid("pid2")));
      assertThat(processes.stopped()).isEqualTo(both);
      Runnable look = new StoppedRanks(processes, Optional.empty());
      for (int i = 0; i < 3 * StoppedRanks.SILENCE; i++) {
        look.run();
      }
      String said =
          "windlass run: only suspended ranks are left: 1 (process %d),"
              + " 2 (process %d); kill -CONT resumes a rank, kill -KILL ends it\n";
      assertThat(err()).isEqualTo(said.formatted(pid("pid1"), pid("pid2")).repeat(3));
      new ProcessBuilder("kill", "-CONT", "" + pid("pid1")).start().waitFor();
      // The other one's time begins anew.
      while (processes.stopped().size() != 1) {
        Thread.sleep(5);
      }
      for (int i = 0; i < StoppedRanks.PATIENCE; i++) {
        look.run();
      }
      assertThat(err().lines()).hasSize(3);
      // On a busy machine a look may find no state of a process that just ends, and begins anew.
      while (err().lines().count() == 3) {
        look.run();
        Thread.sleep(1);
      }
      assertThat(err().lines()).hasSize(4);
      new ProcessBuilder("kill", "-CONT", "" + pid("pid2")).start().waitFor();
      assertThat(processes.await((failure, left) -> true, () -> {})).isEmpty();
    }
  }

  @Test
  void onceClosedNoneIsStarted() throws Exception {
    RankProcesses processes = started(1, "exec sleep 60");
    processes.end();
    processes.start(List.of("touch", folder.resolve("late").toString()), Map.of());
    assertThat(processes.awaitEnd().orElseThrow().status()).isEqualTo(128 + 15);
    assertThat(folder.resolve("late")).doesNotExist();
  }

  @Test
  void whatOutlivesItsRankEndsToo() throws Exception {
    grace = Duration.ofSeconds(1);
    String script = "sh -c 'sleep 60 & echo $! >pid; wait' & " + AWAIT_PID + "kill -9 $$";
    try (RankProcesses processes = started(1, script)) {
      assertThat(processes.awaitEnd().orElseThrow().status()).isEqualTo(128 + 9);
      assertThat(runs(pid("pid"))).isTrue();
    }
    assertThat(runs(pid("pid"))).isFalse();
  }

  @Test
  void whatOutlivesItsRankMayEndByItself() throws Exception {
    String script = "(trap '' HUP; sleep 0.2; echo done >log) >log 2>&1 & printf last";
    try (RankProcesses processes = started(1, script)) {
      assertThat(processes.awaitEnd()).isEmpty();
    }
    assertThat(folder.resolve("log")).hasContent("done");
    assertThat(out()).isEqualTo("[0] last\n");
  }

  @Test
  void whatHidesHoldsNobodyUp() throws Exception {
    String script = "env -i sleep 60 & echo $! >pid; printf last";
    try (RankProcesses processes = started(1, script)) {
      assertThat(processes.awaitEnd()).isEmpty();
      processes.finishOutput();
    }
    assertThat(out()).isEqualTo("[0] last\n");
    assertThat(ProcessHandle.of(pid("pid")).orElseThrow().destroy()).isTrue();
  }

  @Test
  void outputThatCannotBeWrittenEndsTheWait() throws Exception {
    OutputStream gone =
        new OutputStream() {
          @Override
          public void write(int b) throws IOException {
            throw new IOException("Broken pipe");
          }
        };
    try (RankProcesses processes = started(gone, 2, "while :; do echo line; done")) {
      assertThat(processes.awaitEnd()).isEmpty();
      assertThat(processes.output().loss().orElseThrow().stream()).isEqualTo("standard output");
      assertThat(processes.output().loss().orElseThrow().fault()).hasMessage("Broken pipe");
    }
  }

  /** Takes nothing until it is opened. */
  private static final class Gate extends OutputStream {
    private final CountDownLatch open = new CountDownLatch(1);
    private final OutputStream to;

    Gate(OutputStream to) {
      this.to = to;
    }

    @Override
    public void write(int b) throws IOException {
      write(new byte[] {(byte) b}, 0, 1);
    }

    @Override
    public void write(byte[] bytes, int from, int length) throws IOException {
      try {
        assertThat(open.await(60, TimeUnit.SECONDS)).isTrue();
      } catch (InterruptedException e) {
        throw new IOException(e);
      }
      to.write(bytes, from, length);
    }
  }

  @Test
  void aSlowReaderGetsAllOfIt() throws Exception {
    Gate gate = new Gate(out);
    String script = "head -c 50000 /dev/zero | tr '\\0' x; echo; echo $$ >pid; exit 0";
    try (RankProcesses processes = started(gate, 1, script)) {
      pid("pid");
      new Thread(
              () -> {
                try {
                  // Longer than what an abandoned stream would be given.
                  Thread.sleep(1500);
                } catch (InterruptedException e) {
                  Thread.currentThread().interrupt();
                }
                gate.open.countDown();
              })
          .start();
      assertThat(processes.awaitEnd()).isEmpty();
      processes.finishOutput();
    }
    assertThat(out()).isEqualTo("[0] " + "x".repeat(50_000) + "\n");
    assertThat(err()).isEmpty();
  }

  @Test
  void aBlockedReaderDoesNotHoldUpTheEnd() throws Exception {
    grace = Duration.ofSeconds(1);
    Gate gate = new Gate(out);
    String script =
        "if [ $RANK = 1 ]; then " + AWAIT_READY + "exit 3; fi;"
            + " echo $$ >pid; touch ready; while :; do echo line; done";
    try (RankProcesses processes = started(gate, 2, script)) {
      assertThat(processes.awaitEnd().orElseThrow().status()).isEqualTo(3);
      processes.end();
      assertThat(runs(pid("pid"))).isFalse();
    } finally {
      gate.open.countDown();
    }
  }
}
