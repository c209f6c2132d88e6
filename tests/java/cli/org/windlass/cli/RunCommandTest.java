// SPDX-License-Identifier: Apache-2.0
package org.windlass.cli;

import static org.assertj.core.api.Assertions.assertThat;

import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.attribute.PosixFilePermissions;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.TimeUnit;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** {@code windlass run} as a process: what its ranks get, what it gives back, what it leaves. */
@Timeout(120)
class RunCommandTest {
  @TempDir Path folder;

  /** {@code windlass run} of a shell's script on so many ranks. */
  private ProcessBuilder shell(int ranks, String script) {
    return run("-n", ranks, "sh", "-c", script);
  }

  /** With a temporary folder of its own, in which all that is left can be seen. */
  private ProcessBuilder run(Object... arguments) {
    List<Object> all = new ArrayList<>(List.of("run"));
    all.addAll(List.of(arguments));
    List<String> command = ChildCommand.of(all.toArray()).command();
    command.add(1, "-Djava.io.tmpdir=" + folder);
    // Where a shell runs the tests in its background, the signal is ignored.
    command.addAll(0, List.of("env", "--default-signal=INT"));
    ProcessBuilder builder = new ProcessBuilder(command);
    builder.environment().keySet().removeIf(name -> name.startsWith("WINDLASS_TOKEN"));
    return builder;
  }

  /** What it printed and its status; a character is a byte. */
  private Cli finished(ProcessBuilder builder) throws IOException, InterruptedException {
    Path out = folder.resolve("out");
    Path err = folder.resolve("err");
    Process process = builder.redirectOutput(out.toFile()).redirectError(err.toFile()).start();
    try {
      process.getOutputStream().close();
      assertThat(process.waitFor(90, TimeUnit.SECONDS)).isTrue();
    } finally {
      process.destroy();
    }
    return new Cli(
        process.exitValue(),
        Files.readString(out, StandardCharsets.ISO_8859_1),
        Files.readString(err));
  }

  private void requireNothingLeft() throws IOException {
    try (Stream<Path> files = Files.list(folder)) {
      assertThat(files.map(path -> path.getFileName().toString()))
          .noneMatch(name -> name.startsWith("windlass"));
    }
  }

  @Test
  void ranksAreToldWhoTheyAreAndHaveATokenOfTheirs() throws Exception {
    Cli ended =
        finished(
            shell(
                2,
                "echo $RANK $WORLD_SIZE $LOCAL_RANK $LOCAL_WORLD_SIZE $WINDLASS_RANK $MASTER_ADDR;"
                    + " stat -c %a-%s $WINDLASS_TOKEN_FILE; sha256sum <$WINDLASS_TOKEN_FILE"));
    assertThat(ended.status()).as(ended.err()).isZero();
    assertThat(ended.err()).isEmpty();
    List<String> lines = ended.out().lines().sorted().toList();
    assertThat(lines)
        .contains("[0] 0 2 0 2 0 127.0.0.1", "[0] 600-65", "[1] 1 2 1 2 1 127.0.0.1", "[1] 600-65");
    List<String> hashes = lines.stream().filter(line -> line.length() > 60).toList();
    assertThat(hashes).hasSize(2);
    assertThat(hashes.get(0).substring(4)).isEqualTo(hashes.get(1).substring(4));
    requireNothingLeft();
  }

  @Test
  void whereATokenCannotBeWrittenIsSaid() throws Exception {
    ProcessBuilder builder = shell(1, "true");
    builder
        .command()
        .replaceAll(word -> word.equals("-Djava.io.tmpdir=" + folder) ? "-Djava.io.tmpdir=/none" : word);
    Cli ended = finished(builder);
    assertThat(ended.status()).isEqualTo(7);
    assertThat(ended.err())
        .contains("windlass: Resource: /none: cannot be written: no such file or folder");
  }

  /** The store where ranks find each other is there before them. */
  @Test
  void aTokenThatIsSetIsTheirsAndTheStoreIsThere() throws Exception {
    String token = "0a".repeat(32);
    String script =
        "[ $WINDLASS_LAUNCHER_STORE = $WINDLASS_RENDEZVOUS ] &&"
            + " exec 3<>/dev/tcp/${WINDLASS_RENDEZVOUS%:*}/${WINDLASS_RENDEZVOUS#*:} && echo open;"
            + " echo $WINDLASS_TOKEN${WINDLASS_TOKEN_FILE-none}";
    ProcessBuilder builder = run("-n", 1, "bash", "-c", script);
    builder.environment().put("WINDLASS_TOKEN", token);
    assertThat(finished(builder).out()).isEqualTo("[0] open\n[0] " + token + "none\n");
    builder.environment().put("WINDLASS_TOKEN", "mine");
    Cli wrong = finished(builder);
    assertThat(wrong.status()).as(wrong.err()).isEqualTo(2);
    assertThat(wrong.err()).startsWith("windlass: InvalidArgument: WINDLASS_TOKEN ");
    builder.environment().remove("WINDLASS_TOKEN");
    builder.environment().put("WINDLASS_TOKEN_FILE", "/none");
    Cli missing = finished(builder);
    assertThat(missing.status()).as(missing.err()).isEqualTo(2);
    assertThat(missing.err())
        .startsWith("windlass: InvalidArgument: WINDLASS_TOKEN_FILE: /none: cannot be read: No such");
    Path open = Files.writeString(folder.resolve("open"), "0".repeat(64));
    Files.setPosixFilePermissions(open, PosixFilePermissions.fromString("rw-r--r--"));
    for (ProcessBuilder each : List.of(shell(1, "true"), ChildCommand.of("report", "127.0.0.1:1"))) {
      each.environment().remove("WINDLASS_TOKEN");
      each.environment().put("WINDLASS_TOKEN_FILE", open.toString());
      Cli refused = finished(each);
      assertThat(refused.status()).as(refused.err()).isEqualTo(7);
      assertThat(refused.err())
          .contains("WINDLASS_TOKEN_FILE: " + open + " is open to others than its owner")
          .endsWith("\nhint: run chmod 600 on it\n");
    }
  }

  /** Rank 1 fails while rank 0 runs, which goes on until its sibling's end has been told. */
  @Test
  void othersGoOnWhereTheyAreTo() throws Exception {
    String script = "[ $RANK = 1 ] && exit 3; sleep 1; echo went on; exit $END";
    for (int end : new int[] {0, 4}) {
      Cli ended = finished(run("--keep-going", "-n", 2, "env", "END=" + end, "sh", "-c", script));
      assertThat(ended.status()).isEqualTo(end);
      assertThat(ended.out()).isEqualTo("[0] went on\n");
      assertThat(ended.err().lines().findFirst().orElse(""))
          .matches("windlass run: rank 1 .process [0-9]+. ended with status 3; the other ranks continue");
      assertThat(ended.err().lines().count()).isEqualTo(end == 0 ? 1 : 2);
    }
    requireNothingLeft();
  }

  @Test
  void theLastRankThatFailsSaysThatNoneIsLeft() throws Exception {
    String script = "sleep $RANK; exit 1";
    String rank = "windlass run: rank %d \\(process \\d+\\) ended with status 1%s\n";
    Cli two = finished(run("--keep-going", "-n", 2, "sh", "-c", script));
    assertThat(two.err())
        .matches(
            rank.formatted(0, "; the other ranks continue")
                + rank.formatted(1, "; no other rank is left"));
    for (String option : List.of("--keep-going", "--quiet")) {
      Cli one = finished(run(option, "-n", 1, "sh", "-c", script));
      assertThat(one.err()).matches(rank.formatted(0, ""));
    }
  }

  /** It would be stopped for ever. */
  @Test
  void aRankThatStaysStoppedEndsAtTheDeadline() throws Exception {
    String script = "[ $RANK = 1 ] && kill -STOP $$; true";
    Cli ended =
        finished(run("--keep-going", "--deadline", 0.4, "-n", 2, "sh", "-c", script));
    assertThat(ended.status()).as(ended.err()).isEqualTo(128 + 9);
    assertThat(ended.err())
        .matches(
            "windlass run: only suspended ranks are left: 1 \\(process (\\d+)\\);"
                + " they made no progress for 0.5 s and are ended\n"
                + "windlass run: rank 1 \\(process \\1\\) ended with status 137, as by signal 9;"
                + " no other rank is left\n");
    requireNothingLeft();
  }

  @Test
  void whatStandsBehindTheCommandIsItsOwn() throws Exception {
    Object[] words = {"--help", "@f", "-n", "--target", "a9sim", "--", "--json", ""};
    List<Object> all = new ArrayList<>(List.of("-n", 1, "printf", "%s|"));
    all.addAll(List.of(words));
    Cli ended = finished(run(all.toArray()));
    assertThat(ended.status()).as(ended.err()).isZero();
    assertThat(ended.out()).isEqualTo("[0] --help|@f|-n|--target|a9sim|--|--json||\n");
  }

  @Test
  void theFirstFailureIsTheStatusAndIsTold() throws Exception {
    Cli ended = finished(shell(3, "[ $RANK = 2 ] && kill -SEGV $$; exec sleep 60"));
    assertThat(ended.status()).isEqualTo(128 + 11);
    assertThat(ended.err())
        .matches(
            "windlass run: rank 2 \\(process \\d+\\) ended with status 139, as by signal 11;"
                + " all other ranks are ended\n");
    requireNothingLeft();
  }

  @ParameterizedTest
  @ValueSource(strings = {"INT", "TERM"})
  void aSignalEndsAllOfIt(String signal) throws Exception {
    Path pids = Files.createDirectory(folder.resolve("pids"));
    String script =
        "trap 'echo asked; exit 9' TERM; sleep 60 & echo $! >%s/$RANK; wait".formatted(pids);
    Path out = folder.resolve("out");
    ProcessBuilder builder = shell(2, script).redirectErrorStream(true);
    Process process = builder.redirectOutput(out.toFile()).start();
    List<Long> sleeping = List.of(pid(pids.resolve("0")), pid(pids.resolve("1")));
    new ProcessBuilder("kill", "-" + signal, "" + process.pid()).start().waitFor();
    assertThat(process.waitFor(60, TimeUnit.SECONDS)).isTrue();
    assertThat(process.exitValue()).isEqualTo(130);
    List<String> lines = Files.readAllLines(out);
    assertThat(lines.subList(0, 2)).containsExactlyInAnyOrder("[0] asked", "[1] asked");
    assertThat(lines.subList(2, lines.size()))
        .containsExactly(
            "windlass: Aborted: ended by a signal",
            "hint: run it again");
    for (long pid : sleeping) {
      Path stat = Path.of("/proc/" + pid + "/stat");
      assertThat(!Files.exists(stat) || Files.readString(stat).contains(") Z ")).isTrue();
    }
    requireNothingLeft();
  }

  private static long pid(Path file) throws IOException, InterruptedException {
    while (!Files.exists(file) || !Files.readString(file).endsWith("\n")) {
      Thread.sleep(5);
    }
    return Long.parseLong(Files.readString(file).strip());
  }

  @Test
  void rankZeroReadsStandardInputAloneAndBytesAreWhatTheyWere() throws Exception {
    Path in = folder.resolve("in");
    Files.writeString(in, "\u00ff\0\r\n\u00c3", StandardCharsets.ISO_8859_1);
    Cli ended = finished(run("-n", 2, "cat").redirectInput(in.toFile()));
    assertThat(ended).isEqualTo(new Cli(0, "[0] \u00ff\0\r\n[0] \u00c3\n", ""));
  }

  @Test
  void aReaderThatLeavesEndsItWithoutAWord() throws Exception {
    assertThat(redirected("| head -n 1; exit ${PIPESTATUS[0]}")).isEqualTo(new Cli(7, "", ""));
    requireNothingLeft();
  }

  @Test
  void aFullDiskIsTold() throws Exception {
    Cli full = redirected(">/dev/full");
    assertThat(full.status()).isEqualTo(7);
    assertThat(full.err())
        .startsWith("windlass: Resource: standard output cannot be written: ")
        .endsWith("\nhint: redirect it to a file system with room; all ranks were ended\n");
  }

  /** Of ranks that print more than a pipe takes, and stay; without what they print. */
  private Cli redirected(String redirection) throws Exception {
    List<String> command = new ArrayList<>(List.of("bash", "-c", "\"$@\" " + redirection, "-"));
    command.addAll(shell(2, "seq 10000; exec sleep 80").command());
    Cli ended = finished(new ProcessBuilder(command));
    return new Cli(ended.status(), "", ended.err());
  }
}
