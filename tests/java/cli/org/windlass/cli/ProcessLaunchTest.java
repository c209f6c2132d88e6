// SPDX-License-Identifier: Apache-2.0
package org.windlass.cli;

import static org.assertj.core.api.Assertions.assertThat;

import java.io.IOException;
import java.io.PrintWriter;
import java.io.StringWriter;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;
import java.util.concurrent.TimeUnit;
import java.util.function.Supplier;
import java.util.stream.Stream;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.MethodSource;
import org.junit.jupiter.params.provider.ValueSource;
import org.windlass.error.ErrorCode;
import org.windlass.error.VerificationFailedException;

/** Commands whose ranks are processes: what they print, how they fail, what they leave. */
@Timeout(120)
class ProcessLaunchTest {
  private static final long LIMIT_S = 60;

  @TempDir Path folder;

  private Process started;

  @AfterEach
  void end() {
    if (started != null) {
      started.descendants().forEach(ProcessHandle::destroyForcibly);
      started.destroyForcibly();
    }
  }

  @ParameterizedTest
  @ValueSource(
      strings = {
        "bench put --ranks 2 --bytes 4,36K",
        "bench all-reduce --ranks 2 --bytes 4,36K",
        "bench redistribute --from 2:S0 --to 2@0:S1 --shape 65x33",
      })
  void aBenchPrintsALineForEachSize(String command) {
    List<String> words = new ArrayList<>(List.of(command.split(" ")));
    words.addAll(List.of("--launch", "processes", "--seconds", "0.01", "--json"));
    Cli ended = Cli.run(words.toArray());
    assertThat(ended.status()).as(ended.err()).isZero();
    assertThat(ended.out().lines())
        .hasSize(command.contains(",") ? 2 : 1)
        .allMatch(line -> line.contains("\"launch\":\"processes\""))
        .allMatch(line -> line.contains("\"op\":\"" + words.get(1) + "\""))
        .allMatch(line -> line.endsWith("\"verified\":true}"));
  }

  @Test
  void anExampleChecksItsResult() {
    String name = "put-notify";
    Cli ended = Cli.run("example", name, "--ranks", 3, "--launch", "processes");
    assertThat(ended.status()).as(ended.err()).isZero();
    assertThat(ended.out().lines()).hasSize(2).allMatch(line -> line.startsWith(name + ": "));
    assertThat(ended.out()).contains("3 ranks").contains("golden");
  }

  @Test
  void stampsOfAllRanksComeTogether() throws Exception {
    Path file = folder.resolve("ops.csv");
    Cli ended =
        Cli.run(
            "bench", "barrier", "--ranks", 3, "--launch", "processes", "--seconds", 0.2,
            "--ops-csv", file, "--json");
    assertThat(ended.status()).as(ended.err()).isZero();
    assertThat(ended.out().lines())
        .singleElement()
        .asString()
        .contains("\"launch\":\"processes\"", "\"op\":\"barrier\"")
        .endsWith("\"verified\":true}");
    List<String> rows = Files.readAllLines(file);
    assertThat((rows.size() - 1) % 3).isZero();
    for (int row = 1; row < rows.size(); row += 3) {
      long lastReady = Long.MIN_VALUE;
      long firstLeave = Long.MAX_VALUE;
      for (int rank = 0; rank < 3; rank++) {
        String[] cells = rows.get(row + rank).split(",");
        assertThat(cells[4]).isEqualTo("" + rank);
        lastReady = Math.max(lastReady, Long.parseLong(cells[5]));
        firstLeave = Math.min(firstLeave, Long.parseLong(cells[6]));
      }
      assertThat(firstLeave).isGreaterThan(lastReady); // as of a barrier, on one clock
    }
  }

  /** A bench of two ranks that lasts until it is ended, and its second rank. */
  private ProcessHandle start() throws Exception {
    List<Object> words = new ArrayList<>(List.of("bench", "all-reduce", "--launch", "processes"));
    words.addAll(List.of("--seconds", 60, "--bytes", "64,64K"));
    List<String> command = ChildCommand.of(words.toArray()).command();
    command.add(1, "-Djava.io.tmpdir=" + folder);
    // Where a shell runs the tests in its background, the signal is ignored.
    command.addAll(0, List.of("env", "--default-signal=INT"));
    started =
        new ProcessBuilder(command)
            .redirectOutput(folder.resolve("out").toFile())
            .redirectError(folder.resolve("err").toFile())
            .start();
    return await(() -> ChildCommand.secondOf(started));
  }

  private static <T> T await(Supplier<Optional<T>> look) throws InterruptedException {
    long start = System.nanoTime();
    Optional<T> found = look.get();
    while (found.isEmpty()) {
      assertThat(System.nanoTime() - start).isLessThan(TimeUnit.SECONDS.toNanos(LIMIT_S));
      Thread.sleep(10);
      found = look.get();
    }
    return found.get();
  }

  /** Until both ranks have what they share to start, and windows besides. */
  private void awaitStart() throws InterruptedException {
    long second = ChildCommand.secondOf(started).orElseThrow().pid();
    for (long pid : new long[] {started.pid(), second}) {
      await(() -> hasSharedMemory(pid) ? Optional.of(pid) : Optional.empty());
    }
  }

  private static boolean hasSharedMemory(long pid) {
    try {
      String maps = Files.readString(Path.of("/proc/" + pid + "/maps"));
      return maps.lines().filter(line -> line.contains("/memfd:windlass")).count() > 2;
    } catch (IOException e) {
      return false;
    }
  }

  private int ended() throws InterruptedException {
    assertThat(started.waitFor(LIMIT_S, TimeUnit.SECONDS)).isTrue();
    return started.exitValue();
  }

  private String errors() throws IOException {
    return Files.readString(folder.resolve("err"));
  }

  private void requireNothingLeft(ProcessHandle rank) throws Exception {
    await(() -> rank.isAlive() ? Optional.empty() : Optional.of(rank));
    try (Stream<Path> files = Files.list(folder)) {
      assertThat(files.map(path -> path.getFileName().toString()))
          .noneMatch(name -> name.startsWith("windlass"));
    }
  }

  @Test
  void aRankThatIsKilledIsNamed() throws Exception {
    ProcessHandle rank = start();
    awaitStart();
    rank.destroyForcibly();
    assertThat(ended()).as(errors()).isEqualTo(5);
    assertThat(errors())
        .startsWith("windlass: PeerLost: ")
        .contains("process " + rank.pid() + " on ", " has ended: rank 1 is lost");
    requireNothingLeft(rank);
  }

  @Test
  void aRankThatIsKilledBeforeItHasJoinedIsNamed() throws Exception {
    ProcessHandle rank = start();
    rank.destroyForcibly();
    assertThat(ended()).as(errors()).isEqualTo(5);
    // On a busy machine it may have started by then.
    String lost = "rank 1 \\(process %1$s\\) ended with|.*process %1$s on .* rank 1 is lost";
    assertThat(errors())
        .containsPattern(("windlass: PeerLost: (" + lost + ")").formatted(rank.pid()));
    requireNothingLeft(rank);
  }

  @Test
  void theErrorOfARankIsThatOfTheCommand() throws Exception {
    Path said = folder.resolve("said");
    Complaint complaint =
        Complaint.of(new VerificationFailedException("all-gather: rank 1's output differs"));
    assertThat(LaunchedRank.told("rank 1", said)).isEmpty();
    assertThat(LaunchedRank.tell(complaint, said)).isEqualTo(6);
    Complaint told = LaunchedRank.told("rank 1", said).orElseThrow();
    assertThat(told.message()).isEqualTo("rank 1: all-gather: rank 1's output differs");
    assertThat(told.code()).isEqualTo(ErrorCode.VERIFICATION_FAILED);
    assertThat(told.hint()).isEqualTo(complaint.hint());
    StringWriter trace = new StringWriter();
    told.fault().printStackTrace(new PrintWriter(trace));
    assertThat(trace.toString()).contains("theErrorOfARankIsThatOfTheCommand");
  }

  /** A rank may be killed while it says why, or find no room for all of it. */
  @Test
  void whatARankSaysIsThereWholeOrNotAtAll() throws Exception {
    Path said = folder.resolve("said");
    VerificationFailedException fault = new VerificationFailedException("differs");
    for (int i = 0; i < 200; i++) {
      fault.addSuppressed(new IllegalStateException("one of many"));
    }
    Complaint complaint = Complaint.of(fault);
    Thread rank =
        new Thread(
            () -> {
              for (int i = 0; i < 50; i++) {
                LaunchedRank.tell(complaint, said);
              }
            });
    rank.start();
    while (rank.isAlive()) {
      LaunchedRank.told("rank 1", said)
          .ifPresent(told -> assertThat(told.hint()).isEqualTo(complaint.hint()));
    }
    assertThat(LaunchedRank.told("rank 1", said)).isPresent();
  }

  @Test
  void ranksEndWithTheCommand() throws Exception {
    ProcessHandle rank = start();
    awaitStart();
    started.destroyForcibly();
    await(() -> rank.isAlive() ? Optional.empty() : Optional.of(rank));
  }

  static Stream<String> signals() {
    return Boolean.getBoolean("windlass.long") ? Stream.of("INT", "TERM") : Stream.of("TERM");
  }

  @ParameterizedTest
  @MethodSource("signals")
  void aSignalEndsAllOfIt(String signal) throws Exception {
    ProcessHandle rank = start();
    awaitStart();
    new ProcessBuilder("kill", "-" + signal, "" + started.pid()).start().waitFor();
    assertThat(ended()).isEqualTo(130);
    assertThat(errors())
        .isEqualTo(
            "windlass: Aborted: ended by a signal\n"
                + "hint: run it again\n");
    requireNothingLeft(rank);
  }
}
