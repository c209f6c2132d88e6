// SPDX-License-Identifier: Apache-2.0
package org.windlass.cli;

import static org.assertj.core.api.Assertions.assertThat;

import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.Random;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.windlass.testing.Mutation;

/**
 * Rules and lists of tensors in which bytes were changed: the command does what they say, or ends
 * with status 2 or 3 and an error of two lines, and leaves nothing. Runs for 20 s, or {@code
 * -Dwindlass.chance.seconds=N}; {@code -Dwindlass.seed=N} runs one case again.
 */
class MutatedInputsTest {
  private static final Duration TIME =
      Duration.ofSeconds(Long.getLong("windlass.chance.seconds", 20));

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

  @Test
  void aMutatedInputIsTakenOrRefusedInTwoLines() throws IOException {
    Long given = Long.getLong("windlass.seed");
    if (given != null) {
      run(given);
      return;
    }
    Random seeds = new Random();
    long end = System.nanoTime() + TIME.toNanos();
    int cases = 0;
    int refused = 0;
    for (; cases < 100 || System.nanoTime() < end; cases++) {
      refused += run(seeds.nextLong()) == 0 ? 0 : 1;
    }
    System.out.printf("%d mutated inputs, %d refused%n", cases, refused);
    assertThat(refused).isBetween(cases / 10, cases - 1);
  }

  @Test
  void whatIsNotMutatedIsTaken() throws IOException {
    assertThat(reshard(RULES).status()).isZero();
    assertThat(plan(TENSORS).status()).isZero();
  }

  private int run(long seed) throws IOException {
    Random random = new Random(seed);
    Cli done =
        random.nextBoolean()
            ? reshard(Mutation.of(RULES, random))
            : plan(Mutation.of(TENSORS, random));
    String again = "seed %d (-Dwindlass.seed=%d runs it again)".formatted(seed, seed);
    if (done.status() != 0) {
      assertThat(done.status()).as("%s: %s", again, done.err()).isBetween(2, 3);
      assertThat(done.err().lines().filter(line -> line.startsWith("windlass: "))).as(again).hasSize(1);
      assertThat(done.err().lines().filter(line -> line.startsWith("hint: "))).as(again).hasSize(1);
      assertThat(folder.resolve("out")).as(again).doesNotExist();
    }
    try (var files = Files.walk(folder)) {
      for (Path path : files.sorted((a, b) -> b.compareTo(a)).toList()) {
        if (!path.equals(folder)) {
          Files.delete(path);
        }
      }
    }
    return done.status();
  }

  private Cli reshard(String rules) throws IOException {
    byte[] header =
        ("{\"l.0.q\":{\"dtype\":\"BF16\",\"shape\":[4,2],\"data_offsets\":[0,16]},"
                + "\"l.0.k\":{\"dtype\":\"BF16\",\"shape\":[2,4],\"data_offsets\":[16,32]},"
                + "\"norm\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[32,40]}}")
            .getBytes(StandardCharsets.UTF_8);
    byte[] file =
        ByteBuffer.allocate(8 + header.length + 40)
            .order(ByteOrder.LITTLE_ENDIAN)
            .putLong(header.length)
            .put(header)
            .array();
    Path in = Files.write(folder.resolve("in.safetensors"), file);
    Path list = Files.writeString(folder.resolve("rules.json"), rules);
    Path out = folder.resolve("out");
    return Cli.run("reshard", "--from", "1:R", "--to", "2:S0", "--rules", list, in, out);
  }

  private Cli plan(String tensors) throws IOException {
    Path list = Files.writeString(folder.resolve("tensors.json"), tensors);
    return Cli.run("plan", "--from", "2:S0", "--to", "2@2:R", "--tensors", list, "--summary");
  }
}
