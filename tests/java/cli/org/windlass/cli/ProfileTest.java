// SPDX-License-Identifier: Apache-2.0
package org.windlass.cli;

import static org.assertj.core.api.Assertions.assertThat;

import com.fasterxml.jackson.core.JsonFactory;
import com.fasterxml.jackson.core.JsonParser;
import com.fasterxml.jackson.core.JsonToken;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** What the command prints and writes of kernels on a checked target. */
@Timeout(120)
class ProfileTest {
  @TempDir Path folder;

  @Test
  void anExamplePrintsCountersAndWritesATrace() throws Exception {
    Path trace = folder.resolve("trace.json");
    String out =
        ended("example", "broadcast", "--target", "a2a3sim", "--ranks", "2", "--counters", "--trace", trace);
    assertThat(out).containsPattern("(?m)^broadcast: runs \\d+, cycles \\d+, overlap [0-9.-]+ %\n  flags ");
    assertThat(out).containsPattern("(?m)^ +MTE2 +\\d+ +\\d+ ").containsPattern("(?m)^ +MTE3 +\\d+ ");
    assertThat(out.lines()).allSatisfy(line -> assertThat(line).hasSizeLessThanOrEqualTo(80));
    List<String> instructions = new ArrayList<>();
    try (JsonParser json = new JsonFactory().createParser(trace.toFile())) {
      while (json.nextToken() != null) {
        if (json.currentToken() == JsonToken.VALUE_STRING && "name".equals(json.currentName())) {
          instructions.add(json.getText());
        }
      }
    }
    assertThat(instructions)
        .contains("rank 0", "rank 1", "block 0 PIPE_MTE3", "TLOAD of TGET", "TSTORE of TGET");
    assertThat(folder.toFile().list()).containsExactly("trace.json");
  }

  @Test
  void aBenchPrintsAnObjectForEachSizeAndKernel() throws Exception {
    String out =
        ended("bench", "all-gather", "--target", "a5sim", "--bytes", "4K", "--seconds", "0.01", "--json");
    assertThat(out.lines().filter(line -> line.startsWith("{\"kernel\":\"all-gather\",\"bytes\":4096,")))
        .hasSize(1)
        .allSatisfy(line -> assertThat(line).contains("\"MTE2\":{\"instructions\":", "\"cycles\":"));
  }

  /** Its counters lie in no window that all ranks know: each tells those of its own items. */
  @ParameterizedTest
  @ValueSource(strings = {"a2a3sim", "a5sim"})
  void aBenchRedistributesBetweenWindowsOfThreads(String target) throws Exception {
    String out =
        ended("bench", "redistribute", "--target", target, "--launch", "threads", "--from", "2:S0",
            "--to", "2:S1", "--shape", "64x64", "--seconds", "0.01", "--json");
    assertThat(out).contains("\"verified\":true", "{\"kernel\":\"transfer\",\"bytes\":16384,");
  }

  /** What the command prints, which succeeds. */
  private String ended(Object... arguments) throws IOException, InterruptedException {
    Path log = folder.resolve("log");
    Process command =
        ChildCommand.of(arguments).redirectError(log.toFile()).start();
    String out = new String(command.getInputStream().readAllBytes(), StandardCharsets.UTF_8);
    assertThat(command.waitFor(60, TimeUnit.SECONDS)).isTrue();
    assertThat(command.exitValue()).as(Files.readString(log)).isZero();
    Files.delete(log);
    return out;
  }
}
