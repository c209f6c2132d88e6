// SPDX-License-Identifier: Apache-2.0
package org.windlass.reshard.move;

import static org.assertj.core.api.Assertions.assertThat;

import java.nio.ByteBuffer;
import java.nio.file.Path;
import java.time.Duration;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.Random;
import java.util.stream.LongStream;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.io.TempDir;
import org.windlass.DType;
import org.windlass.LocalGroup;
import org.windlass.checkpoint.SafetensorsFile;
import org.windlass.checkpoint.SafetensorsHeader;
import org.windlass.checkpoint.SafetensorsWriter;
import org.windlass.reshard.output.Output;
import org.windlass.testing.RandomSeeds;

/** Random boxes of files and blocks, against single elements. */
class FileBoxTest {
  private static LocalGroup group;
  private static Team team;

  @TempDir Path folder;

  @BeforeAll
  static void start() {
    group = LocalGroup.of(1);
    team = Team.open(group, () -> 0, Duration.ofSeconds(60));
  }

  @AfterAll
  static void end() {
    team.close();
    group.close();
  }

  @RandomSeeds(value = 60, inLong = 5_000)
  void aBoxIsReadAndWritten(long seed) {
    Random random = new Random(seed);
    int ndim = random.nextInt(4);
    // Rows of a few bytes with short and long gaps, and rows that are longer than one call reads.
    int most = ndim < 2 ? 2_000_000 : ndim == 2 ? 3000 : 100;
    long[] file = random.longs(ndim, 1, most).toArray();
    long[] block = random.longs(ndim, 1, most).toArray();
    long[] shape = new long[ndim];
    Arrays.setAll(
        shape,
        d -> {
          long fits = Math.min(file[d], block[d]);
          return random.nextBoolean() ? fits : 1 + random.nextLong(fits);
        });
    long[] start = new long[ndim];
    Arrays.setAll(start, d -> random.nextLong(file[d] - shape[d] + 1));
    long[] place = new long[ndim];
    Arrays.setAll(place, d -> random.nextLong(block[d] - shape[d] + 1));
    FileBox box = new FileBox(1, file, start, shape, block, place);
    assertThat(box.bytes()).isEqualTo(elements(shape));

    byte[] values = new byte[(int) elements(block)];
    random.nextBytes(values);
    ByteBuffer written = ByteBuffer.allocateDirect(values.length).put(values);
    ByteBuffer read = ByteBuffer.allocateDirect(values.length);
    ByteBuffer inFile = ByteBuffer.allocateDirect((int) elements(file));
    Path path = folder.resolve("f" + seed + ".safetensors");
    var item = new SafetensorsHeader.Item("w", DType.U8, LongStream.of(file).boxed().toList());
    try (SafetensorsWriter out = SafetensorsWriter.create(path, List.of(item), Map.of())) {
      box.write(new Output.Place(out, 0), written, null, team);
    }
    try (SafetensorsFile in = SafetensorsFile.open(path)) {
      in.read("w", 0, inFile);
      read.limit(0);
      box.read(in, "w", read, ByteBuffer.allocateDirect(FileBox.SCRATCH_BYTES), team);
    }
    read.clear();
    inFile.clear();
    long inBlock = 0;
    for (long i = 0; i < elements(shape); i++) {
      int at = offset(i, shape, place, block);
      byte value = values[at];
      inBlock += value == 0 ? 0 : 1;
      if (read.get(at) != value || inFile.get(offset(i, shape, start, file)) != value) {
        assertThat(read.get(at)).as("seed %d: element %d read", seed, i).isEqualTo(value);
        assertThat(inFile.get(offset(i, shape, start, file)))
            .as("seed %d: element %d written", seed, i)
            .isEqualTo(value);
      }
    }
    assertThat(nonzero(read)).as("seed %d: bytes beside the box", seed).isEqualTo(inBlock);
    assertThat(nonzero(inFile)).as("seed %d: bytes beside the box", seed).isEqualTo(inBlock);
  }

  private static long elements(long[] shape) {
    return Arrays.stream(shape).reduce(1, (a, b) -> a * b);
  }

  private static int offset(long element, long[] shape, long[] start, long[] extents) {
    long offset = 0;
    long stride = 1;
    for (int d = shape.length - 1; d >= 0; d--) {
      offset += (start[d] + element % shape[d]) * stride;
      element /= shape[d];
      stride *= extents[d];
    }
    return (int) offset;
  }

  private static long nonzero(ByteBuffer bytes) {
    long count = 0;
    for (int i = 0; i < bytes.capacity(); i++) {
      count += bytes.get(i) == 0 ? 0 : 1;
    }
    return count;
  }
}
