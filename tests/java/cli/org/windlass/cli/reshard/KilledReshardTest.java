// SPDX-License-Identifier: Apache-2.0
package org.windlass.cli.reshard;

import static org.assertj.core.api.Assertions.assertThat;

import java.io.File;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Random;
import java.util.concurrent.TimeUnit;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;
import org.windlass.checkpoint.CheckpointWriter;
import org.windlass.cli.ChildCommand;
import org.windlass.cli.Cli;
import org.windlass.testing.SafetensorsBytes;

/**
 * A process of its own is stopped at random moments, alone or with another that runs its other
 * ranks: OUT is what it was or what it shall be. One moment of each kind; 50 where the system
 * property {@code windlass.long} is true.
 */
@Timeout(900)
class KilledReshardTest {
  private static final int ELEMENTS = 4 << 20;
  private static final int MOMENTS = Boolean.getBoolean("windlass.long") ? 50 : 1;

  /** About how long a run lasts. */
  private static final int LIFE_MILLIS = 1200;

  @TempDir Path folder;

  /** Where those that are killed leave a token. */
  @TempDir Path temporary;

  private Path in(String name, int value) throws IOException {
    byte[] data = new byte[ELEMENTS];
    Arrays.fill(data, (byte) value);
    return SafetensorsBytes.write(
        folder.resolve(name),
        "{\"w\":{\"dtype\":\"U8\",\"shape\":[1024,4096],\"data_offsets\":[0," + ELEMENTS + "]}}",
        data);
  }

  private Process start(Object... arguments) throws IOException {
    List<Object> all = new ArrayList<>(List.of("reshard"));
    all.addAll(List.of(arguments));
    ProcessBuilder builder = ChildCommand.of(all.toArray());
    builder.command().add(1, "-Djava.io.tmpdir=" + temporary);
    // Where a shell runs the tests in its background, the signal is ignored.
    builder.command().addAll(0, List.of("env", "--default-signal=INT"));
    return builder
        .redirectErrorStream(true)
        .redirectOutput(new File(folder.toFile(), "log"))
        .start();
  }

  private List<String> names() throws IOException {
    try (Stream<Path> entries = Files.list(folder)) {
      return entries.map(path -> path.getFileName().toString()).sorted().toList();
    }
  }

  /** Waits until the process has its work folder; fails if it ends without one. */
  private void awaitWork(Process process) throws IOException, InterruptedException {
    while (names().stream().noneMatch(name -> name.contains(".windlass-"))) {
      if (!process.isAlive()) {
        assertThat(process.exitValue()).as(Files.readString(folder.resolve("log"))).isZero();
        return;
      }
      Thread.sleep(1);
    }
  }

  private byte valueOf(Path out) throws IOException {
    byte value = 0;
    for (int rank = 0; rank < 4; rank++) {
      byte[] part = Files.readAllBytes(out.resolve(String.format("rank-%05d.safetensors", rank)));
      byte last = part[part.length - 1];
      byte[] expected = new byte[ELEMENTS / 4];
      Arrays.fill(expected, last);
      int begin = part.length - expected.length;
      assertThat(Arrays.equals(part, begin, part.length, expected, 0, expected.length)).isTrue();
      long header = ByteBuffer.wrap(part).order(ByteOrder.LITTLE_ENDIAN).getLong();
      assertThat(Long.BYTES + header).isEqualTo(begin);
      assertThat(value == 0 || value == last).isTrue();
      value = last;
    }
    try (Stream<Path> files = Files.list(out)) {
      assertThat(files).hasSize(5);
    }
    return value;
  }

  /**
   * Kills a run at a random moment: one of its whole life, or as often one after it has its work
   * folder, which is little of it.
   */
  private void kill(Process process, Random random) throws IOException, InterruptedException {
    boolean atWork = random.nextBoolean();
    if (atWork) {
      awaitWork(process);
    }
    Thread.sleep(random.nextInt(atWork ? LIFE_MILLIS / 4 : LIFE_MILLIS));
    process.destroyForcibly();
    assertThat(process.waitFor(60, TimeUnit.SECONDS)).isTrue();
  }

  @ParameterizedTest
  @ValueSource(strings = {"threads", "processes"})
  void aKilledRunWithForceLeavesTheOldOrTheNewAndTheNextRemovesTheRest(String launch)
      throws Exception {
    Path first = in("first.safetensors", 1);
    Path second = in("second.safetensors", 2);
    Path out = folder.resolve("out");
    assertThat(Cli.run("reshard", "--from", "1:R", "--to", "4:S1", first, out).status()).isZero();
    long seed = Long.getLong("windlass.seed", System.nanoTime());
    Random random = new Random(seed);
    for (int i = 0; i < MOMENTS; i++) {
      Process process =
          start("--from", "1:R", "--to", "4:S1", second, out, "--force", "--launch", launch);
      kill(process, random);
      assertThat(valueOf(out)).as("seed %d, moment %d", seed, i).isIn((byte) 1, (byte) 2);
    }
    assertThat(Cli.run("reshard", "--from", "1:R", "--to", "4:S1", first, out, "--force").status())
        .isZero();
    assertThat(valueOf(out)).isEqualTo((byte) 1);
    assertThat(names())
        .containsExactly("first.safetensors", "log", "out", "second.safetensors");
  }

  @ParameterizedTest
  @ValueSource(strings = {"threads", "processes"})
  void aKilledRunWithoutForceLeavesNothingOrTheNew(String launch) throws Exception {
    Path in = in("in.safetensors", 3);
    long seed = Long.getLong("windlass.seed", System.nanoTime());
    Random random = new Random(seed);
    for (int i = 0; i < MOMENTS; i++) {
      Path out = folder.resolve("out" + i);
      kill(start("--from", "1:R", "--to", "4:S1", in, out, "--launch", launch), random);
      if (Files.exists(out)) {
        assertThat(valueOf(out)).as("seed %d, moment %d", seed, i).isEqualTo((byte) 3);
      }
    }
    Path last = folder.resolve("last");
    assertThat(Cli.run("reshard", "--from", "1:R", "--to", "4:S1", in, last).status()).isZero();
    assertThat(names()).noneMatch(name -> name.startsWith("."));
  }

  @Test
  void aRunIsRefusedWhileAnotherProcessMakesItsOut() throws Exception {
    Path in = in("in.safetensors", 3);
    Path out = folder.resolve("out");
    try (CheckpointWriter other = CheckpointWriter.begin(out, false)) {
      assertThat(other.staged()).doesNotExist();
      Process loser = start("--from", "1:R", "--to", "4:S1", in, out);
      assertThat(loser.waitFor(60, TimeUnit.SECONDS)).isTrue();
      String log = Files.readString(folder.resolve("log"));
      assertThat(loser.exitValue()).as(log).isEqualTo(2);
      assertThat(log)
          .contains(out + ": process " + ProcessHandle.current().pid() + " is writing it");
    }
    Process next = start("--from", "1:R", "--to", "4:S1", in, out);
    assertThat(next.waitFor(60, TimeUnit.SECONDS)).isTrue();
    assertThat(next.exitValue()).isZero();
    assertThat(valueOf(out)).isEqualTo((byte) 3);
  }

  @Test
  void anInterruptedRunLeavesNothingAndEndsWith130() throws Exception {
    Path in = in("in.safetensors", 3);
    Path out = folder.resolve("out");
    Process process = start("--from", "1:R", "--to", "4:S1", in, out, "--verify");
    awaitWork(process);
    new ProcessBuilder("kill", "-INT", "" + process.pid()).start().waitFor();
    assertThat(process.waitFor(60, TimeUnit.SECONDS)).isTrue();
    if (process.exitValue() == 0) {
      // It was faster than the signal.
      assertThat(valueOf(out)).isEqualTo((byte) 3);
    } else {
      assertThat(process.exitValue()).isEqualTo(130);
      assertThat(names()).containsExactly("in.safetensors", "log");
    }
  }
}
