// SPDX-License-Identifier: Apache-2.0
package org.windlass.cli;

import static org.assertj.core.api.Assertions.assertThat;

import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.Random;
import java.util.concurrent.TimeUnit;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.Arguments;
import org.junit.jupiter.params.provider.MethodSource;
import org.windlass.examples.Examples;

/**
 * Every example by the command on the checked targets, and some examples as processes. In the long
 * form every example on every target, in both launches, at 2, 4 and 8 ranks.
 */
@Timeout(180)
class EveryExampleTest {
  private static final boolean IS_LONG = Boolean.getBoolean("windlass.long");
  private static final long LIMIT_S = 150;
  private static final int AS_PROCESSES = 3;
  private static final int RANKS = 2;

  @TempDir Path folder;

  static Stream<Arguments> cases() {
    if (!IS_LONG) {
      return Stream.of(
          Arguments.of("a2a3sim", "threads", 4),
          Arguments.of("a5sim", "threads", 2));
    }
    return Stream.of("sim", "a2a3sim", "a5sim")
        .flatMap(
            target ->
                Stream.of("threads", "processes")
                    .flatMap(
                        launch ->
                            Stream.of(2, 4, 8)
                                .map(ranks -> Arguments.of(target, launch, ranks))));
  }

  /** Any few, since each is some processes more. */
  @Test
  void someCheckTheirResultsAsProcesses() {
    long seed = Long.getLong("windlass.seed", System.nanoTime());
    List<Examples.Example> examples = new ArrayList<>(Examples.all());
    Collections.shuffle(examples, new Random(seed));
    for (Examples.Example example : examples.subList(0, AS_PROCESSES)) {
      Cli ended =
          Cli.run("example", example.name(), "--launch", "processes", "--ranks", RANKS);
      assertThat(ended.status()).as("seed %d, %s: %s", seed, example.name(), ended.err()).isZero();
      assertThat(ended.out()).as("seed %d, %s", seed, example.name()).contains("golden");
    }
  }

  @ParameterizedTest
  @MethodSource("cases")
  void allCheckTheirResults(String target, String launch, int ranks) throws Exception {
    Path output = folder.resolve("output");
    Process command =
        ChildCommand.of("example", "--all", "--target", target, "--launch", launch, "--ranks", ranks)
            .redirectErrorStream(true)
            .redirectOutput(output.toFile())
            .start();
    try {
      assertThat(command.waitFor(LIMIT_S, TimeUnit.SECONDS)).as(Files.readString(output)).isTrue();
    } finally {
      command.descendants().forEach(ProcessHandle::destroyForcibly);
      command.destroyForcibly();
    }
    String said = Files.readString(output, StandardCharsets.UTF_8);
    assertThat(command.exitValue()).as(said).isZero();
    assertThat(said.lines().filter(line -> line.contains("golden")))
        .as(said)
        .hasSize(Examples.all().size());
  }
}
