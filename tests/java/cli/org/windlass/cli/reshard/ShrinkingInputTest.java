// SPDX-License-Identifier: Apache-2.0
package org.windlass.cli.reshard;

import static org.assertj.core.api.Assertions.assertThat;

import java.io.File;
import java.io.IOException;
import java.io.RandomAccessFile;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Random;
import java.util.concurrent.TimeUnit;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;
import org.windlass.cli.ChildCommand;
import org.windlass.cli.Cli;
import org.windlass.testing.SafetensorsBytes;

/**
 * IN is cut short and made whole again, over and over, while a process of its own reads it: that
 * process says what is wrong with it and lives.
 */
@Timeout(600)
class ShrinkingInputTest {
  private static final int RUNS = Boolean.getBoolean("windlass.long") ? 20 : 5;
  private static final long ROWS = 4096;
  private static final long COLUMNS = 8192;

  @TempDir Path folder;

  /** Reshards IN into OUT until so many runs have failed, and prints how each ended. */
  static final class Reader {
    public static void main(String[] arguments) {
      Path out = Path.of(arguments[1]);
      int runs = Integer.parseInt(arguments[2]);
      for (int run = 0, failed = 0; failed < runs; run++) {
        List<Object> command = new ArrayList<>(List.of("reshard", "--from", "1:R"));
        command.addAll(List.of("--to", run % 4 < 2 ? "4:S1" : "4:S0", arguments[0], out, "--force"));
        if (run % 2 == 1) {
          command.add("--verify");
        }
        Cli ended = Cli.run(command.toArray());
        failed += ended.status() == 0 ? 0 : 1;
        // A slow run shows its progress too.
        String said =
            ended.err().lines().filter(line -> line.startsWith("windlass: ")).findFirst().orElse("");
        System.out.println(ended.status() + " " + said);
      }
    }
  }

  @Test
  void aFileThatIsCutShortWhileItIsReadIsAnErrorThatNamesIt() throws Exception {
    Path in = folder.resolve("in.safetensors");
    long data =
        SafetensorsBytes.zeros(
            in,
            "{\"w\":{\"dtype\":\"U8\",\"shape\":[" + ROWS + "," + COLUMNS + "],\"data_offsets\":[0,"
                + ROWS * COLUMNS + "]}}",
            ROWS * COLUMNS);
    Process reader;
    long seed = Long.getLong("windlass.seed", System.nanoTime());
    Random random = new Random(seed);
    try (RandomAccessFile file = new RandomAccessFile(in.toFile(), "rw")) {
      reader = start(in, folder.resolve("out"));
      while (reader.isAlive()) {
        // Long enough for a run to open a file that is whole, and to read some of it.
        Thread.sleep(random.nextInt(60));
        file.setLength(data + random.nextLong(ROWS * COLUMNS));
        Thread.sleep(random.nextInt(10));
        file.setLength(data + ROWS * COLUMNS);
      }
    } finally {
      assertThat(folder.resolve("log")).exists();
    }
    assertThat(reader.waitFor(60, TimeUnit.SECONDS)).isTrue();
    List<String> log = Files.readAllLines(folder.resolve("log"));
    assertThat(reader.exitValue()).as("seed %d: %s", seed, log).isZero();
    assertThat(log).allMatch(line -> line.matches("0 .*|[27] windlass: .*"));
    assertThat(log.stream().filter(line -> !line.startsWith("0")))
        .hasSize(RUNS)
        .allMatch(line -> line.contains(in.toString()));
    try (Stream<Path> left = Files.list(folder)) {
      assertThat(left.map(path -> path.getFileName().toString())).noneMatch(n -> n.startsWith("."));
    }
  }

  private Process start(Path in, Path out) throws IOException {
    String natives = System.getProperty("org.windlass.library.path");
    List<String> command = ChildCommand.program(Reader.class, natives, in, out, RUNS).command();
    command.add(1, "-XX:-CreateCoredumpOnCrash");
    return new ProcessBuilder(command)
        .directory(folder.toFile())
        .redirectErrorStream(true)
        .redirectOutput(new File(folder.toFile(), "log"))
        .start();
  }
}
