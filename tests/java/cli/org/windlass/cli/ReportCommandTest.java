// SPDX-License-Identifier: Apache-2.0
package org.windlass.cli;

import static org.assertj.core.api.Assertions.assertThat;

import com.fasterxml.jackson.core.JsonFactory;
import com.fasterxml.jackson.core.JsonParser;
import com.fasterxml.jackson.core.JsonToken;
import java.io.IOException;
import java.io.StringWriter;
import java.io.UncheckedIOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeSet;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.locks.LockSupport;
import java.util.function.Predicate;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;
import org.windlass.Communicator;
import org.windlass.CommunicatorOptions;
import org.windlass.LocalGroup;
import org.windlass.cli.run.RankVariables;
import org.windlass.cli.run.RunFolder;

/** {@code windlass report} of a bench whose ranks are processes. */
@Timeout(120)
class ReportCommandTest {
  private static final long LIMIT_S = 60;

  @TempDir Path folder;

  private Process bench;
  private ProcessHandle second;

  /**
   * So many seconds of two ranks that call one all-reduce after the other, of a size whose samples
   * are too few in a minute to end it earlier.
   */
  private void start(double seconds) throws Exception {
    List<String> command =
        ChildCommand.of(
                "bench", "all-reduce", "--launch", "processes", "--seconds", seconds, "--bytes", "16M")
            .command();
    command.add(1, "-Djava.io.tmpdir=" + folder);
    bench =
        new ProcessBuilder(command)
            .redirectOutput(folder.resolve("out").toFile())
            .redirectError(folder.resolve("err").toFile())
            .start();
    long start = System.nanoTime();
    while (!awaitsReport()) {
      assertThat(System.nanoTime() - start).isLessThan(TimeUnit.SECONDS.toNanos(LIMIT_S));
      Thread.sleep(20);
    }
    second = ChildCommand.secondOf(bench).orElseThrow();
  }

  private boolean awaitsReport() {
    Cli told = Cli.run("report", bench.pid());
    return told.status() == 0 && told.out().contains("   1  ") && told.out().contains("all-reduce");
  }

  @AfterEach
  void end() {
    if (bench != null) {
      bench.descendants().forEach(ProcessHandle::destroyForcibly);
      bench.destroyForcibly();
    }
  }

  /** HOST:PORT and the file of the token, as the second rank was told. */
  private Map<String, String> told() throws IOException {
    Map<String, String> told = new LinkedHashMap<>();
    String all = Files.readString(Path.of("/proc/" + second.pid() + "/environ"));
    Matcher variable = Pattern.compile("(WINDLASS_[A-Z_]+)=([^\0]*)").matcher(all);
    while (variable.find()) {
      told.put(variable.group(1), variable.group(2));
    }
    return told;
  }

  /** {@code windlass report} as a process, with these variables. */
  private Cli report(Map<String, String> variables, Object... arguments) throws Exception {
    List<Object> words = new ArrayList<>(List.of("report"));
    words.addAll(List.of(arguments));
    ProcessBuilder builder = ChildCommand.of(words.toArray());
    builder.environment().keySet().removeIf(name -> name.startsWith("WINDLASS_TOKEN"));
    builder.environment().putAll(variables);
    Path out = folder.resolve("report-out");
    Path err = folder.resolve("report-err");
    Process process = builder.redirectOutput(out.toFile()).redirectError(err.toFile()).start();
    assertThat(process.waitFor(LIMIT_S, TimeUnit.SECONDS)).isTrue();
    return new Cli(process.exitValue(), Files.readString(out), Files.readString(err));
  }

  /** Of one job: its table, its JSON while a rank is stopped, and what a watch says of a lost rank. */
  @Test
  void reportsOfAJobThatRuns() throws Exception {
    start(60);
    signal("STOP"); // so that it takes no core from what follows
    requireJson();
    requireTables();
    signal("CONT");
    requireThatAWatchNamesALostRank();
  }

  private void signal(String name) throws Exception {
    new ProcessBuilder("kill", "-" + name, "" + second.pid()).start().waitFor();
  }

  private void requireTables() throws Exception {
    for (long pid : new long[] {bench.pid(), second.pid()}) {
      Cli told = Cli.run("report", pid);
      assertThat(told.status()).as(told.err()).isZero();
      List<String> lines = told.out().lines().toList();
      assertThat(lines.get(0)).matches("communicator [0-9a-f]+: 2 ranks, made [0-9.]+ s ago");
      assertThat(lines.get(1)).matches("rank +process +since +busy +where");
      assertThat(lines).anyMatch(line -> line.startsWith("   0  " + bench.pid() + " "));
      assertThat(lines).anyMatch(line -> line.startsWith("   1  " + second.pid() + " "));
      assertThat(lines).allSatisfy(line -> assertThat(line).hasSizeLessThanOrEqualTo(80));
      assertThat(told.err()).isEmpty();
    }
    Map<String, String> variables = told();
    Map<String, String> token =
        Map.of("WINDLASS_TOKEN_FILE", variables.get("WINDLASS_TOKEN_FILE"));
    Cli told = report(token, variables.get("WINDLASS_RENDEZVOUS"));
    assertThat(told.status()).as(told.err()).isZero();
    assertThat(told.out()).contains("   1  " + second.pid() + " ");
    Cli without = report(Map.of(), variables.get("WINDLASS_RENDEZVOUS"));
    assertThat(without.status()).as(without.err()).isEqualTo(2);
    assertThat(without.err())
        .startsWith("windlass: InvalidArgument: report: there is no token, which an address")
        .contains("\nhint: set WINDLASS_TOKEN_FILE to the file with the token of the job's ranks");
    Cli wrong =
        report(Map.of("WINDLASS_TOKEN", "0".repeat(64)), variables.get("WINDLASS_RENDEZVOUS"));
    assertThat(wrong.status()).as(wrong.err()).isEqualTo(7);
    assertThat(wrong.err())
        .contains("the store holds another token")
        .contains("hint: set WINDLASS_TOKEN_FILE");
    assertThat(wrong.out()).isEmpty();
  }

  /** An object a line, with the keys of the manual. */
  private void requireJson() throws Exception {
    Cli told = await(json -> json.contains("\"process_state\":\"stopped\""));
    assertThat(told.out().lines()).hasSize(1);
    assertThat(keys(told.out()))
        .containsExactlyInAnyOrder(
            "over",
            "communicators",
            "communicators/id",
            "communicators/parent",
            "communicators/age_us",
            "communicators/failure",
            "communicators/peer_memory",
            "communicators/ranks",
            "communicators/ranks/rank",
            "communicators/ranks/host",
            "communicators/ranks/elsewhere",
            "communicators/ranks/process",
            "communicators/ranks/process_state",
            "communicators/ranks/closed",
            "communicators/ranks/call",
            "communicators/ranks/call/operation",
            "communicators/ranks/call/text",
            "communicators/ranks/call/sequence",
            "communicators/ranks/call/inside",
            "communicators/ranks/call/failure",
            "communicators/ranks/call/bytes",
            "communicators/ranks/call/since_us",
            "communicators/ranks/call/took_us",
            "communicators/ranks/item",
            "communicators/ranks/waits_for",
            "communicators/ranks/contested");
    assertThat(told.out())
        .startsWith("{\"over\":false,")
        .contains("\"parent\":null", "\"failure\":null")
        .contains("\"rank\":0,\"host\":0,\"elsewhere\":false,\"process\":" + bench.pid())
        .contains("\"process\":" + bench.pid() + ",\"process_state\":\"runs\"")
        .contains("\"process\":" + second.pid() + ",\"process_state\":\"stopped\"");
  }

  private Cli await(Predicate<String> seen) throws InterruptedException {
    long start = System.nanoTime();
    while (true) {
      Cli told = Cli.run("report", bench.pid(), "--json");
      assertThat(told.status()).as(told.err()).isZero();
      if (seen.test(told.out())) {
        return told;
      }
      assertThat(System.nanoTime() - start).as(told.out()).isLessThan(LIMIT_S * 1_000_000_000L);
      Thread.sleep(10);
    }
  }

  /** A rank of a job that closes its communicator once it is told to. */
  static final class Held {
    private Held() {}

    public static void main(String[] none) throws IOException {
      try (LocalGroup group =
          LocalGroup.fromEnvironment(
              1, CommunicatorOptions.defaults(), Duration.ofSeconds(LIMIT_S))) {
        group.run(Communicator::barrier);
        System.out.println("met");
        System.in.read();
      }
    }
  }

  @Test
  void aWatchEndsWithTheJob() throws Exception {
    List<Process> ranks = new ArrayList<>();
    try (RunFolder token = new RunFolder();
        RankVariables variables = new RankVariables(2, token)) {
      for (int rank = 0; rank < 2; rank++) {
        ProcessBuilder builder =
            ChildCommand.program(Held.class, System.getProperty("org.windlass.library.path"));
        builder.environment().putAll(variables.of(rank));
        ranks.add(builder.redirectError(ProcessBuilder.Redirect.INHERIT).start());
      }
      for (Process rank : ranks) {
        // A read of a pipe takes no interrupt: another thread waits for it.
        assertThat(
                CompletableFuture.supplyAsync(() -> rank.inputReader().lines().findFirst())
                    .get(LIMIT_S, TimeUnit.SECONDS))
            .contains("met");
      }
      StringWriter out = new StringWriter();
      Thread closer =
          new Thread(
              () -> {
                while (looks(out.toString()) < 4 && !Thread.interrupted()) {
                  LockSupport.parkNanos(1_000_000);
                }
                ranks.forEach(ReportCommandTest::close);
              });
      closer.start();
      Cli watched = Cli.runInto(out, "report", ranks.get(1).pid(), "--watch", "--every", "0.1");
      closer.interrupt();
      closer.join();
      assertThat(watched.status()).as(watched.err()).isZero();
      assertThat(watched.out())
          .endsWith("the job is over: all ranks have closed their communicators\n");
      assertThat(looks(watched.out())).isGreaterThan(3);
      assertThat(watched.err()).isEmpty();
      for (Process rank : ranks) {
        assertThat(rank.waitFor(LIMIT_S, TimeUnit.SECONDS)).isTrue();
        assertThat(rank.exitValue()).isZero();
      }
    } finally {
      ranks.forEach(Process::destroyForcibly);
    }
  }

  private static long looks(String watched) {
    return watched.lines().filter(line -> line.startsWith("communicator ")).count();
  }

  private static void close(Process rank) {
    try {
      rank.getOutputStream().close();
    } catch (IOException ended) {
      throw new UncheckedIOException(ended);
    }
  }

  private void requireThatAWatchNamesALostRank() throws Exception {
    StringWriter out = new StringWriter();
    Thread killer =
        new Thread(
            () -> {
              while (out.getBuffer().indexOf("\n") < 0 && !Thread.interrupted()) {
                LockSupport.parkNanos(1_000_000);
              }
              second.destroyForcibly();
            });
    killer.start();
    Cli watched = Cli.runInto(out, "report", bench.pid(), "--watch", "--every", "0.05", "--json");
    killer.interrupt();
    killer.join();
    assertThat(watched.status()).as(watched.err() + watched.out()).isEqualTo(5);
    assertThat(watched.err())
        .contains("\"code\":\"PeerLost\"")
        .contains("the job is over: rank 1 (process " + second.pid() + ") ended without closing");
    List<String> lines = watched.out().lines().toList();
    assertThat(lines.get(0)).startsWith("{\"over\":false,");
    assertThat(lines.get(lines.size() - 1))
        .startsWith("{\"over\":true,")
        .contains("\"process_state\":\"ended\"")
        .contains("\"failure\":{\"code\":\"PeerLost\"");
  }

  /** The keys of a JSON text, behind those that they stand under. */
  private static Set<String> keys(String text) throws IOException {
    Set<String> keys = new TreeSet<>();
    try (JsonParser parser = new JsonFactory().createParser(text)) {
      for (JsonToken token = parser.nextToken(); token != null; token = parser.nextToken()) {
        if (token == JsonToken.FIELD_NAME) {
          String path = parser.getParsingContext().pathAsPointer().toString();
          keys.add(path.replaceAll("/\\d+", "").substring(1));
        }
      }
    }
    return keys;
  }
}
