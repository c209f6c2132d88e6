// SPDX-License-Identifier: Apache-2.0
package org.windlass.cli;

import static org.assertj.core.api.Assertions.assertThat;
import static org.junit.jupiter.api.Assumptions.assumeTrue;
import static org.junit.jupiter.params.provider.Arguments.arguments;

import java.io.IOException;
import java.io.PrintWriter;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.Optional;
import java.util.Random;
import java.util.UUID;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.Arguments;
import org.junit.jupiter.params.provider.MethodSource;
import org.junit.jupiter.params.provider.ValueSource;
import org.windlass.examples.ExampleOfProcesses;
import org.windlass.testing.SafetensorsBytes;

/**
 * A process gets a signal at random moments: it ends with status 130 and says nothing of what then
 * fails in it; a command that was at something says that it was ended. One moment of each command; 40 where the system property {@code windlass.long} is
 * true.
 */
@Timeout(1800)
class InterruptionTest {
  private static final boolean IS_LONG = Boolean.getBoolean("windlass.long");
  private static final int MOMENTS = IS_LONG ? 40 : 1;
  private static final int BYTES = 24 << 20;

  /** What a JVM says that a signal met before it was one. */
  private static final String BEFORE_MAIN = "Error occurred during initialization of VM";

  /** What a command says that a signal has ended. */
  private static final String ENDED = "windlass: Aborted: ended by a signal\nhint: run it again";

  /** What it adds if it had begun an output. */
  private static final String REMOVED = "; unfinished output was removed";

  @TempDir Path folder;

  static Stream<Arguments> commands() {
    return Stream.of(
        arguments(List.of("reshard", "--from", "1:R", "--to", "4:S1", "IN", "OUT", "--verify"), 1500),
        arguments(List.of("bench", "all-reduce", "--ranks", "3", "--bytes", "4,1M"), 2500),
        arguments(List.of("demo", "--layers", "1"), 2500),
        arguments(List.of("example", "--all"), 2500),
        arguments(List.of("run", "-n", "8", "sleep", "1"), 1500),
        arguments(List.of("doctor"), 700));
  }

  @ParameterizedTest
  @MethodSource("commands")
  void aSignalEndsItWithoutAWord(List<String> command, int lifeMillis) throws Exception {
    long seed = Long.getLong("windlass.seed", System.nanoTime());
    Random random = new Random(seed);
    Path in = in();
    Path log = folder.resolve("log");
    for (int i = 0; i < MOMENTS; i++) {
      Path out = folder.resolve("out" + i);
      Object[] arguments =
          command.stream()
              .map(word -> word.equals("IN") ? in : word.equals("OUT") ? out : word)
              .toArray();
      ProcessBuilder builder = ChildCommand.of(arguments);
      // Where a shell runs the tests in its background, the signal is ignored.
      builder.command().addAll(0, List.of("env", "--default-signal=INT"));
      Process process = builder.redirectErrorStream(true).redirectOutput(log.toFile()).start();
      String signal = random.nextBoolean() ? "-INT" : "-TERM";
      if (command.contains("OUT") && random.nextBoolean()) {
        awaitWork(process);
        Thread.sleep(random.nextInt(200));
      } else {
        Thread.sleep(random.nextInt(lifeMillis));
      }
      new ProcessBuilder("kill", signal, "" + process.pid()).start().waitFor();
      assertThat(process.waitFor(60, TimeUnit.SECONDS)).isTrue();
      String said = Files.readString(log);
      if (said.startsWith(BEFORE_MAIN)) {
        continue;
      }
      said = said.replaceFirst(ENDED + "(" + REMOVED + ")?\n$", "");
      said =
          said.replaceFirst(
              "windlass: Aborted: ended by a signal\nhint: " + out + " is complete\n$", "");
      assertThat(said)
          .as("seed %d, moment %d", seed, i)
          .doesNotContain("windlass:")
          .doesNotContain("hint:")
          .doesNotContain("Exception")
          .doesNotContain("SIGSEGV");
      // A signal that comes before the command has begun ends the JVM as such: 128 and its number.
      assertThat(process.exitValue()).as(said).isIn(0, 130, 143);
      if (!said.isEmpty()) {
        assertThat(process.exitValue()).as(said).isIn(0, 130);
      }
      assertThat(names()).noneMatch(name -> name.startsWith("."));
    }
  }

  /** Once it works: as other errors are, on standard error. */
  @ParameterizedTest
  @ValueSource(strings = {"reshard", "reshard --json", "run"})
  void aSignalIsAnErrorAsOthersAre(String command) throws Exception {
    Path out = folder.resolve("out");
    ProcessBuilder builder =
        command.equals("run")
            ? ChildCommand.of("run", "-n", 1, "sh", "-c", "touch " + out + "; sleep 100")
            : ChildCommand.of("reshard", "--from", "1:R", "--to", "64:S1", in(), out, "--verify");
    if (command.endsWith("--json")) {
      builder.command().add("--json");
    }
    for (String signal : List.of("-INT", "-TERM")) {
      Path log = folder.resolve("log");
      builder.command().addAll(0, List.of("env", "--default-signal=INT"));
      Process process = builder.redirectError(log.toFile()).start();
      if (command.equals("run")) {
        while (process.isAlive() && !Files.exists(out)) {
          Thread.sleep(1);
        }
      } else {
        awaitWork(process);
      }
      new ProcessBuilder("kill", signal, "" + process.pid()).start().waitFor();
      assertThat(process.waitFor(60, TimeUnit.SECONDS)).isTrue();
      assertThat(process.exitValue()).as(Files.readString(log)).isEqualTo(130);
      assertThat(log)
          .hasContent(
              command.endsWith("--json")
                  ? "{\"code\":\"Aborted\",\"status\":130,\"message\":\"ended by a signal\","
                      + "\"hint\":\"run it again; unfinished output was removed\"}"
                  : ENDED + (command.equals("reshard") ? REMOVED : "") + "\n");
      Files.deleteIfExists(out);
      assertThat(names()).noneMatch(name -> name.startsWith(".") || name.equals("out"));
    }
  }

  /** Once it has printed its first lines, and has more to do. */
  @ParameterizedTest
  @ValueSource(strings = {"demo --layers 2", "bench all-reduce --bytes 4,16M", "example --all"})
  void aSignalIsAnErrorOfCommandsWithThreads(String words) throws Exception {
    Path out = folder.resolve("out");
    Path err = folder.resolve("err");
    ProcessBuilder builder = ChildCommand.of((Object[]) words.split(" "));
    Process process = builder.redirectOutput(out.toFile()).redirectError(err.toFile()).start();
    while (process.isAlive() && Files.size(out) == 0) {
      Thread.sleep(1);
    }
    new ProcessBuilder("kill", "-TERM", "" + process.pid()).start().waitFor();
    assertThat(process.waitFor(60, TimeUnit.SECONDS)).isTrue();
    assertThat(process.exitValue()).as(Files.readString(err)).isEqualTo(130);
    assertThat(err).hasContent(ENDED + "\n");
  }

  /** The token and the folder of the ranks' errors. */
  @Test
  void theNextLaunchRemovesWhatSigkillLeft() throws Exception {
    Path temporary = Files.createDirectory(folder.resolve("tmp"));
    Process killed = launch(temporary, "bench", "all-reduce");
    while (ChildCommand.secondOf(killed).isEmpty()) {
      assertThat(killed.isAlive()).isTrue();
      Thread.sleep(10);
    }
    List<ProcessHandle> ranks = killed.children().toList();
    killed.destroyForcibly().waitFor();
    for (ProcessHandle rank : ranks) {
      rank.destroyForcibly();
      rank.onExit().get(60, TimeUnit.SECONDS);
    }
    assertThat(launched(temporary)).isNotEmpty();
    Process next = launch(temporary, "bench", "all-reduce");
    assertThat(next.waitFor(60, TimeUnit.SECONDS)).isTrue();
    assertThat(next.exitValue()).isZero();
    assertThat(launched(temporary)).isEmpty();
  }

  private static Process launch(Path temporary, Object... words) throws IOException {
    ProcessBuilder builder = ChildCommand.of(words);
    builder.command().add(1, "-Djava.io.tmpdir=" + temporary);
    builder.command().addAll(List.of("--ranks", "2", "--bytes", "4", "--launch", "processes"));
    return builder
        .redirectOutput(ProcessBuilder.Redirect.DISCARD)
        .redirectError(ProcessBuilder.Redirect.INHERIT)
        .start();
  }

  private static List<Path> launched(Path temporary) throws IOException {
    try (Stream<Path> entries = Files.list(temporary)) {
      return entries
          .filter(each -> each.getFileName().toString().matches("windlass-run-.*"))
          .toList();
    }
  }

  /** Once OUT has its name: an error that says so, or the result and status 0. */
  @ParameterizedTest
  @ValueSource(strings = {"-INT", "-TERM"})
  void aSignalToACompleteReshardSaysThatOutIsComplete(String signal) throws Exception {
    Path out = folder.resolve("out");
    Path log = folder.resolve("log");
    Path result = folder.resolve("result");
    ProcessBuilder builder =
        ChildCommand.of("reshard", "--from", "1:R", "--to", "4:S1", in(), out, "--json", "--force");
    builder.command().addAll(0, List.of("env", "--default-signal=INT"));
    Process process = builder.redirectOutput(result.toFile()).redirectError(log.toFile()).start();
    while (process.isAlive() && !Files.exists(out)) {
      Thread.sleep(1);
    }
    new ProcessBuilder("kill", signal, "" + process.pid()).start().waitFor();
    assertThat(process.waitFor(60, TimeUnit.SECONDS)).isTrue();
    assertThat(out.resolve("layout.json")).exists();
    if (process.exitValue() == 0) {
      assertThat(log).isEmptyFile();
      assertThat(result).content().startsWith("{\"tensors\":");
      return;
    }
    assertThat(process.exitValue()).isEqualTo(130);
    assertThat(log)
        .hasContent(
            "{\"code\":\"Aborted\",\"status\":130,\"message\":\"ended by a signal\","
                + "\"hint\":\"" + out + " is complete\"}");
  }

  static Stream<List<String>> examplesOfJobs() {
    return Stream.of(
        List.of("example", "weight-sync", "--launch", "processes"),
        List.of("example", "torch-trainer"));
  }

  /** While processes start, and once they work; one of these, and all in the long form. */
  @ParameterizedTest
  @MethodSource("examplesOfJobs")
  void aSignalTakesAwayWhatTheJobsOfAnExampleAre(List<String> words) throws Exception {
    Optional<String> lacking =
        ExampleOfProcesses.find(words.get(1)).flatMap(example -> example.lacking().get());
    assumeTrue(lacking.isEmpty(), () -> lacking.orElse(""));
    long seed = Long.getLong("windlass.seed", System.nanoTime());
    Random random = new Random(seed);
    List<String> moments = List.of("", "starts, ", "sent ");
    int any = random.nextInt(moments.size());
    for (String said : IS_LONG ? moments : moments.subList(any, any + 1)) {
      Path temporary = Files.createTempDirectory(folder, "tmp");
      String mark = UUID.randomUUID().toString();
      Path log = folder.resolve("log");
      ProcessBuilder command = ChildCommand.of(words.toArray());
      command.command().add(1, "-Djava.io.tmpdir=" + temporary);
      command.environment().put("WINDLASS_TEST_MARK", mark);
      Process process =
          command.redirectErrorStream(true).redirectOutput(log.toFile()).start();
      while (process.isAlive() && !Files.readString(log).contains(said)) {
        Thread.sleep(5);
      }
      Thread.sleep(said.equals("sent ") ? 0 : random.nextInt(1500));
      assertThat(marked(mark)).as("seed %d, after '%s'", seed, said).isNotEmpty();
      new ProcessBuilder("kill", "-TERM", "" + process.pid()).start().waitFor();
      assertThat(process.waitFor(60, TimeUnit.SECONDS)).isTrue();
      assertThat(process.exitValue()).as(Files.readString(log)).isIn(130, 143);
      assertThat(marked(mark)).as(said).isEmpty();
      assertThat(temporary).as(said).isEmptyDirectory();
    }
  }

  /** What runs with this in its environment, which all have that a process starts. */
  private static List<Long> marked(String mark) {
    return ProcessHandle.allProcesses()
        .filter(process -> hasMark(process.pid(), mark))
        .map(ProcessHandle::pid)
        .toList();
  }

  private static boolean hasMark(long pid, String mark) {
    try {
      Path file = Path.of("/proc", "" + pid, "environ");
      return Files.readString(file, StandardCharsets.ISO_8859_1).contains(mark);
    } catch (IOException anothersOrGone) {
      return false;
    }
  }

  /** A command that runs while the process ends, and before it has. */
  static final class Late {
    private Late() {}

    public static void main(String[] args) throws InterruptedException {
      CountDownLatch begun = new CountDownLatch(1);
      CountDownLatch over = new CountDownLatch(1);
      Thread hook =
          new Thread(
              () -> {
                begun.countDown();
                try {
                  over.await(60, TimeUnit.SECONDS);
                } catch (InterruptedException e) {
                  // Ends the wait.
                }
              });
      Runtime.getRuntime().addShutdownHook(hook);
      new Thread(() -> System.exit(130)).start();
      begun.await();
      Main.run(new PrintWriter(System.out), new PrintWriter(System.err, true), args);
      over.countDown();
    }
  }

  @Test
  void whatFailsWhileTheProcessEndsIsNotTold() throws Exception {
    List<String> command =
        ChildCommand.of("reshard", "--from", "1:R", "--to", "2:S0", folder.resolve("gone"), "out").command();
    command.set(command.indexOf(Main.class.getName()), Late.class.getName());
    Path log = folder.resolve("log");
    Process process =
        new ProcessBuilder(command).redirectErrorStream(true).redirectOutput(log.toFile()).start();
    assertThat(process.waitFor()).isEqualTo(130);
    assertThat(log).isEmptyFile();
  }

  private Path in() throws IOException {
    Path in = folder.resolve("in.safetensors");
    SafetensorsBytes.zeros(
        in,
        "{\"w\":{\"dtype\":\"U8\",\"shape\":[6144,4096],\"data_offsets\":[0," + BYTES + "]}}",
        BYTES);
    return in;
  }

  private void awaitWork(Process process) throws IOException, InterruptedException {
    while (process.isAlive() && names().stream().noneMatch(name -> name.contains(".windlass-"))) {
      Thread.sleep(1);
    }
  }

  private List<String> names() throws IOException {
    try (Stream<Path> entries = Files.list(folder)) {
      return entries.map(path -> path.getFileName().toString()).toList();
    }
  }
}
