// SPDX-License-Identifier: Apache-2.0
package org.windlass.cli.reshard;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;
import java.util.Random;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.function.Supplier;
import java.util.stream.Stream;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.MethodSource;
import org.windlass.cli.ChildCommand;
import org.windlass.cli.Cli;
import org.windlass.error.AbortedException;
import org.windlass.error.DeadlineExceededException;
import org.windlass.error.MismatchException;
import org.windlass.reshard.Reshard;
import org.windlass.testing.SafetensorsBytes;

/**
 * A reshard whose ranks are processes: it writes, says and leaves what one of threads does, whoever
 * of them is killed, stopped or signalled.
 */
@Timeout(300)
class LaunchedReshardTest {
  private static final long LIMIT_S = 60;

  /** Takes a while to move. */
  private static final long LARGE = 768L << 20;

  @TempDir Path folder;

  private Process started;

  @AfterEach
  void end() throws InterruptedException {
    if (started != null) {
      started.descendants().forEach(ProcessHandle::destroyForcibly);
      started.destroyForcibly();
      assertThat(started.waitFor(LIMIT_S, TimeUnit.SECONDS)).isTrue();
    }
  }

  private static Cli reshard(Object... arguments) {
    List<Object> words = new ArrayList<>(List.of("reshard"));
    words.addAll(List.of(arguments));
    return Cli.run(words.toArray());
  }

  private static Cli launched(Object... arguments) {
    List<Object> words = new ArrayList<>(List.of(arguments));
    words.addAll(List.of("--launch", "processes"));
    return reshard(words.toArray());
  }

  private Path out(String name) {
    return folder.resolve(name);
  }

  /** What stands in the folder beside these. */
  private List<String> beside(String... names) {
    try (Stream<Path> entries = Files.list(folder)) {
      return entries
          .map(path -> path.getFileName().toString())
          .filter(name -> !List.of(names).contains(name))
          .sorted()
          .toList();
    } catch (IOException e) {
      throw new AssertionError(e);
    }
  }

  /** A file of one tensor of random bytes, in which floats are numbers. */
  private static void write(Path path, String dtype, String shape, int bytes, long seed)
      throws IOException {
    byte[] data = new byte[bytes];
    new Random(seed).nextBytes(data);
    if (dtype.equals("F32")) {
      for (int i = 3; i < bytes; i += 4) {
        data[i] = (byte) (data[i] & 0x80 | 0x3f);
      }
    }
    SafetensorsBytes.write(
        path,
        "{\"w\":{\"dtype\":\"" + dtype + "\",\"shape\":" + shape + ",\"data_offsets\":[0," + bytes
            + "]}}",
        data);
  }

  /** A file of one large tensor of zeros. */
  private Path large() throws IOException {
    Path in = folder.resolve("in.safetensors");
    SafetensorsBytes.zeros(
        in,
        "{\"w\":{\"dtype\":\"F32\",\"shape\":[" + LARGE / 4096 + ",1024],\"data_offsets\":[0," + LARGE
            + "]}}",
        LARGE);
    return in;
  }

  /**
   * Each is larger than a step, and its ranks are those of two processes: rank 8 is the first one of
   * the second.
   */
  @Test
  void twoProcessesWriteTheBitsThatOneWrites() throws IOException {
    Path terms = Files.createDirectory(folder.resolve("terms"));
    for (int rank = 7; rank < 10; rank++) {
      write(
          terms.resolve("rank-%05d.safetensors".formatted(rank)),
          "F32",
          "[2250,1000]",
          9_000_000,
          rank);
    }
    Path replicas = folder.resolve("replicas.safetensors");
    write(replicas, "BF16", "[5,350,2500]", 8_750_000, 7);
    Path halves = folder.resolve("halves.safetensors");
    write(halves, "F4", "[6,3000000]", 9_000_000, 8);
    List<List<Object>> all =
        List.of(
            List.of(
                "--from", "3@7:P", "--to", "2x2@6:S0,S1", "--dtype", "bf16", "--verify", terms),
            List.of("--from", "1@7:R", "--to", "2x3@5:R,S2", replicas),
            List.of("--from", "1@7:R", "--to", "3@7:S0", "--mode", "staged", halves));
    try (TwoProcesses processes = new TwoProcesses()) {
      for (int i = 0; i < all.size(); i++) {
        List<Object> words = new ArrayList<>(List.of("reshard"));
        words.addAll(all.get(i));
        words.add(out("out" + i));
        Cli threads = Cli.run(words.toArray());
        assertThat(threads.status()).as(threads.err()).isZero();
        processes.compare(words, out("out" + i));
      }
    }
  }

  @Test
  void theResultIsThatOfThreads() throws IOException {
    Path in = folder.resolve("in.safetensors");
    write(in, "F32", "[8,6]", 192, 1);
    Cli threads = reshard("--from", "2:S0", "--to", "3:S1", in, out("a"), "--json", "--verify");
    Cli processes = launched("--from", "2:S0", "--to", "3:S1", in, out("b"), "--json", "--verify");
    assertThat(processes.status()).as(processes.err()).isZero();
    assertThat(processes.err()).isEmpty();
    assertThat(processes.out().lines()).hasSize(1);
    String times = "\"(seconds|GBps|floor_s)\":[^,]*,";
    assertThat(processes.out().replaceAll(times, "")).isEqualTo(threads.out().replaceAll(times, ""));
  }

  @Test
  void whatIsWrongIsSaidOnceAndAsWithThreads() throws IOException {
    Path in = Files.createDirectory(folder.resolve("in"));
    write(in.resolve("rank-00000.safetensors"), "F32", "[2,3]", 24, 1);
    write(in.resolve("rank-00001.safetensors"), "F32", "[2,3]", 24, 2);
    String none = "[{\"match\": \"none\", \"to\": \"1:R\"}]";
    Path rules = Files.writeString(folder.resolve("rules"), none);
    List<Object[]> wrong =
        List.of(
            new Object[] {"--from", "2:R", "--to", "1:R", in, out("out"), "--verify"},
            new Object[] {"--from", "3:R", "--to", "1:R", in, out("out")},
            new Object[] {"--from", "3:R", "--to", "1:R", in, out("out"), "--rules", rules},
            new Object[] {"--from", "2:R", "--to", "1:R", in, in.resolve("out")},
            new Object[] {"--from", "2:R", "--to", "1:R", in, out("none").resolve("out")});
    for (Object[] arguments : wrong) {
      Cli threads = reshard(arguments);
      Cli processes = launched(arguments);
      assertThat(threads.status()).isNotZero();
      assertThat(processes.status()).isEqualTo(threads.status());
      assertThat(processes.err()).isEqualTo(threads.err());
      assertThat(processes.out()).isEmpty();
      assertThat(beside("in", "rules")).isEmpty();
    }
  }

  @Test
  void processesThatAreAskedForDifferentThingsSaySo() throws IOException {
    Path in = folder.resolve("in.safetensors");
    write(in, "F32", "[8,6]", 192, 1);
    List<Object> own = List.of("--from", "1:R", "--to", "2:S0", in, out("out"));
    try (TwoProcesses processes = new TwoProcesses()) {
      processes.ask(List.of("--from", "1:R", "--to", "2:S1", in, out("out")));
      assertThatThrownBy(() -> TwoProcesses.of(own).run(processes.group()))
          .isInstanceOf(MismatchException.class)
          .hasMessageContaining("rank " + TwoProcesses.RANKS_EACH + " (process " + processes.other() + ")");
      assertThat(processes.answer()).startsWith("MismatchException: ");
    }
    assertThat(beside("in.safetensors")).isEmpty();
  }

  @Test
  void aCancelledRunLeavesNothingInEitherProcess() throws IOException {
    Path in = large();
    List<Object> words = List.of("--from", "1:R", "--to", "2:S0", in, out("out"));
    try (TwoProcesses processes = new TwoProcesses()) {
      processes.ask(words);
      Reshard reshard = TwoProcesses.of(words);
      List<List<String>> left = new ArrayList<>();
      reshard.progress(
          (moved, total) -> {
            if (moved > 0 && left.isEmpty()) {
              reshard.cancel();
              left.add(beside("in.safetensors"));
            }
          });
      assertThatThrownBy(() -> reshard.run(processes.group()))
          .isInstanceOf(AbortedException.class)
          .hasMessage("reshard: was cancelled");
      assertThat(left).containsExactly(List.of());
      assertThat(processes.answer()).startsWith("AbortedException: ").endsWith("reshard: was cancelled");
    }
    assertThat(beside("in.safetensors")).isEmpty();
  }

  /** The deadline counts from what moved last. */
  @Test
  void aProcessThatIsStoppedIsNamedAtTheDeadline() throws Exception {
    Path in = large();
    List<Object> words =
        List.of("--from", "1@7:R", "--to", "2@7:S0", "--deadline", 3, in, out("out"));
    try (TwoProcesses processes = new TwoProcesses()) {
      String ofTheOther =
          "rank (8|9|1[0-5]) \\(process %d\\)".formatted(processes.other());
      processes.ask(words);
      Reshard reshard = TwoProcesses.of(words);
      AtomicBoolean isStopped = new AtomicBoolean();
      reshard.progress(
          (moved, total) -> {
            if (moved > 0 && !isStopped.getAndSet(true)) {
              processes.stop();
            }
          });
      assertThatThrownBy(() -> reshard.run(processes.group()))
          .isInstanceOf(DeadlineExceededException.class)
          .hasMessageContaining("nothing moved for 3.0 s")
          .message()
          .matches(
              text -> text.matches(".*; the others wait for %1$s(, %1$s)*".formatted(ofTheOther)),
              "names ranks of the other process only");
    }
    assertThat(beside("in.safetensors")).isEmpty();
  }

  // ---- the command in a process of its own

  /** A run of the large file that has begun to move; its second process. */
  private ProcessHandle start() throws Exception {
    ProcessHandle other = launch(60);
    await(() -> hasOpened(other) ? Optional.of(other) : Optional.empty());
    return other;
  }

  /** A run of the large file; its second process. */
  private ProcessHandle launch(int deadline) throws Exception {
    List<Object> words = new ArrayList<>(List.of("reshard", "--from", "1:R", "--to", "2:S0"));
    words.addAll(List.of(large(), out("out"), "--launch", "processes", "--deadline", deadline));
    List<String> command = ChildCommand.of(words.toArray()).command();
    Path temporary = Files.createDirectories(folder.resolve("tmp"));
    command.add(1, "-Djava.io.tmpdir=" + temporary);
    // Where a shell runs the tests in its background, the signal is ignored.
    command.addAll(0, List.of("env", "--default-signal=INT"));
    started =
        new ProcessBuilder(command)
            .redirectOutput(folder.resolve("log").toFile())
            .redirectError(folder.resolve("err").toFile())
            .start();
    return await(() -> ChildCommand.secondOf(started));
  }

  /** Whether that process has files of OUT. */
  private static boolean hasOpened(ProcessHandle process) {
    try (Stream<Path> files = Files.list(Path.of("/proc/" + process.pid() + "/fd"))) {
      return files.anyMatch(file -> leadsTo(file).contains(".windlass-"));
    } catch (IOException e) {
      return false;
    }
  }

  private static String leadsTo(Path file) {
    try {
      return Files.readSymbolicLink(file).toString();
    } catch (IOException closed) {
      return "";
    }
  }

  private static <T> T await(Supplier<Optional<T>> look) throws InterruptedException {
    long start = System.nanoTime();
    Optional<T> found = look.get();
    while (found.isEmpty()) {
      assertThat(System.nanoTime() - start).isLessThan(TimeUnit.SECONDS.toNanos(LIMIT_S));
      Thread.sleep(2);
      found = look.get();
    }
    return found.get();
  }

  private int ended() throws InterruptedException {
    assertThat(started.waitFor(LIMIT_S, TimeUnit.SECONDS)).isTrue();
    return started.exitValue();
  }

  private String errors() throws IOException {
    return Files.readString(folder.resolve("err"));
  }

  private static void signal(String name, ProcessHandle process) throws Exception {
    new ProcessBuilder("kill", "-" + name, "" + process.pid()).start().waitFor();
  }

  private void requireNothingLeft(ProcessHandle other) throws Exception {
    await(() -> other.isAlive() ? Optional.empty() : Optional.of(other));
    assertThat(beside("in.safetensors", "tmp", "log", "err")).isEmpty();
    try (Stream<Path> files = Files.list(folder.resolve("tmp"))) {
      assertThat(files.map(path -> path.getFileName().toString()))
          .noneMatch(name -> name.startsWith("windlass"));
    }
  }

  @Test
  void aProcessThatIsKilledIsNamed() throws Exception {
    ProcessHandle other = start();
    other.destroyForcibly();
    assertThat(ended()).as(errors()).isEqualTo(5);
    assertThat(errors().lines().filter(line -> line.startsWith("windlass: ")))
        .singleElement()
        .asString()
        .startsWith("windlass: PeerLost: ")
        .contains("process " + other.pid());
    requireNothingLeft(other);
  }

  /** A busy machine may need more time until ranks know each other: the next run has twice as much. */
  @Test
  void aProcessThatIsStoppedAsItComesUpIsNamedAtTheDeadline() throws Exception {
    boolean isNamed = false;
    for (int deadline = 1; !isNamed; deadline *= 2) {
      ProcessHandle other = launch(deadline);
      signal("STOP", other);
      assertThat(ended()).as(errors()).isEqualTo(4);
      List<String> said =
          errors().lines().filter(line -> line.startsWith("windlass: ")).toList();
      assertThat(said).hasSize(1);
      isNamed = said.get(0).contains("rank 1 ");
      assertThat(isNamed || deadline < 30).as("%s", said).isTrue();
      requireNothingLeft(other);
    }
  }

  static Stream<String> signals() {
    return Boolean.getBoolean("windlass.long") ? Stream.of("INT", "TERM") : Stream.of("INT");
  }

  @ParameterizedTest
  @MethodSource("signals")
  void aSignalEndsBothAndLeavesNothing(String signal) throws Exception {
    ProcessHandle other = start();
    signal(signal, started.toHandle());
    assertThat(ended()).as(errors()).isEqualTo(130);
    assertThat(errors().replaceFirst("windlass: Aborted: ended by a signal\n", ""))
        .doesNotContain("windlass:");
    requireNothingLeft(other);
  }

  @Test
  void aCommandThatIsKilledEndsTheOtherProcessAndTheNextRunRemovesTheRest() throws Exception {
    ProcessHandle other = start();
    started.destroyForcibly();
    assertThat(started.waitFor(LIMIT_S, TimeUnit.SECONDS)).isTrue();
    await(() -> other.isAlive() ? Optional.empty() : Optional.of(other));
    assertThat(out("out")).doesNotExist();
    assertThat(beside("in.safetensors", "tmp", "log", "err")).hasSize(1);
    Path small = folder.resolve("small.safetensors");
    write(small, "F32", "[8,6]", 192, 1);
    Cli next = launched("--from", "1:R", "--to", "2:S0", small, out("out"));
    assertThat(next.status()).as(next.err()).isZero();
    assertThat(beside("in.safetensors", "small.safetensors", "tmp", "log", "err"))
        .containsExactly("out");
  }
}
