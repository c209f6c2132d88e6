// SPDX-License-Identifier: Apache-2.0
package org.windlass.cli;

import static org.assertj.core.api.Assertions.assertThat;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Random;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.windlass.testing.Mutation;
import org.windlass.testing.RandomSeeds;
import org.windlass.testing.SafetensorsBytes;

/**
 * Rules and lists of tensors in which bytes were changed: the command does what they say, or ends
 * with status 2 or 3 and an error of two lines, and leaves nothing.
 */
class MutatedInputsTest {
  private static final int LEAST = 100;

  private static final String RULES =
      """
      [{"match": "l.{n}.q", "as": "layer{n}.query", "dtype": "f32", "to": "2:S0"},
       {"match": "l.*", "from": "1:R", "transpose": true},
       {"match": "*", "to": "2:R"}]
      """;

  private static final String TENSORS =
      """
      [{"name": "a", "shape": [16, 8], "dtype": "f32", "from": "2:S0", "to": "3:S1", "count": 4},
       {"name": "b", "shape": [], "dtype": "BF16"},
       {"name": "c", "shape": [9], "dtype": "i8"}]
      """;

  @TempDir private Path folder;

  private int cases;
  private int refused;

  @AfterEach
  void someWereRefused() {
    if (cases >= LEAST) {
      System.out.printf("%d mutated inputs, %d refused%n", cases, refused);
      assertThat(refused).isBetween(cases / 10, cases - 1);
    }
  }

  @Test
  void whatIsNotMutatedIsTaken() throws IOException {
    assertThat(reshard(RULES).status()).isZero();
    assertThat(plan(TENSORS).status()).isZero();
  }

  @RandomSeeds(value = LEAST, seconds = 2)
  void aMutatedInputIsTakenOrRefusedInTwoLines(long seed) throws IOException {
    Random random = new Random(seed);
    Cli done =
        random.nextBoolean()
            ? reshard(Mutation.of(RULES, random))
            : plan(Mutation.of(TENSORS, random));
    cases++;
    if (done.status() != 0) {
      refused++;
      assertThat(done.status()).as(done.err()).isBetween(2, 3);
      assertThat(done.err().lines().filter(MutatedInputsTest::isError)).hasSize(1);
      assertThat(done.err().lines().filter(line -> line.startsWith("hint: "))).hasSize(1);
      assertThat(folder.resolve("out")).doesNotExist();
    }
    try (var files = Files.walk(folder)) {
      for (Path path : files.sorted((a, b) -> b.compareTo(a)).toList()) {
        if (!path.equals(folder)) {
          Files.delete(path);
        }
      }
    }
  }

  /** A rule that matches nothing is a warning, which may come before. */
  private static boolean isError(String line) {
    return line.startsWith("windlass: ") && !line.startsWith("windlass: warning: ");
  }

  private Cli reshard(String rules) throws IOException {
    Path in =
        SafetensorsBytes.write(
            folder.resolve("in.safetensors"),
            "{\"l.0.q\":{\"dtype\":\"BF16\",\"shape\":[4,2],\"data_offsets\":[0,16]},"
                + "\"l.0.k\":{\"dtype\":\"BF16\",\"shape\":[2,4],\"data_offsets\":[16,32]},"
                + "\"norm\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[32,40]}}",
            new byte[40]);
    Path list = Files.writeString(folder.resolve("rules.json"), rules);
    Path out = folder.resolve("out");
    return Cli.run("reshard", "--from", "1:R", "--to", "2:S0", "--rules", list, in, out);
  }

  private Cli plan(String tensors) throws IOException {
    Path list = Files.writeString(folder.resolve("tensors.json"), tensors);
    return Cli.run("plan", "--from", "2:S0", "--to", "2@2:R", "--tensors", list, "--summary");
  }
}
