// SPDX-License-Identifier: Apache-2.0
package org.windlass.checkpoint;

import static org.assertj.core.api.Assertions.assertThat;

import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Random;
import java.util.function.UnaryOperator;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;
import org.windlass.Tensor;
import org.windlass.error.InternalException;
import org.windlass.error.WindlassException;
import org.windlass.testing.Mutation;
import org.windlass.testing.RandomSeeds;
import org.windlass.testing.Resources;
import org.windlass.testing.SafetensorsBytes;

/**
 * Checkpoints in which bytes were changed, cut, repeated or exchanged for other words: each is read
 * whole or refused with a message that names the file.
 */
class MutatedFilesTest {
  private static final int WARM_UP = 200;

  @TempDir private Path folder;

  private int cases;
  private int refused;
  private Resources before;

  @RandomSeeds(value = 2 * WARM_UP, seconds = 2)
  void aMutatedFileIsReadWholeOrRefusedByName(long seed) throws IOException {
    if (cases++ == WARM_UP) {
      before = Resources.settled();
    }
    refused += isRefused(new Random(seed)) ? 1 : 0;
  }

  @AfterEach
  void nothingIsLeftAndSomeWereRefused() {
    if (before != null) {
      System.out.printf("%d mutated files, %d refused%n", cases, refused);
      before.requireNoMoreNow();
      assertThat(refused).isBetween(cases / 10, cases - 1);
    }
  }

  @ParameterizedTest
  @ValueSource(ints = {0, 1, 2, 3})
  void aCheckpointThatIsNotMutatedIsRead(int form) throws IOException {
    assertThat(isRead(write(form, UnaryOperator.identity()))).isTrue();
  }

  private boolean isRefused(Random random) throws IOException {
    try {
      return !isRead(write(random.nextInt(4), each -> Mutation.of(each, random)));
    } finally {
      try (var files = Files.list(folder)) {
        for (Path file : files.toList()) {
          Files.delete(file);
        }
      }
    }
  }

  private static boolean isRead(Path in) {
    try (Checkpoint checkpoint = Checkpoint.open(in)) {
      checkpoint.layouts();
      for (SafetensorsFile file : checkpoint.files()) {
        for (SafetensorsEntry entry : file.header().tensors()) {
          Tensor bytes = file.bytes(entry.name());
          bytes.copyTo(new byte[Math.toIntExact(bytes.numel())]);
        }
      }
      return true;
    } catch (InternalException e) {
      throw e;
    } catch (WindlassException e) {
      assertThat(e.getMessage()).contains(in.getFileName().toString());
      return false;
    }
  }

  /** A checkpoint in one of its forms, of which one file is mutated; what is to be opened. */
  private Path write(int form, UnaryOperator<byte[]> mutation) throws IOException {
    byte[] file = safetensors();
    byte[] layouts =
        ("{\"version\":1,\"tensors\":{\"a\":{\"shape\":[2,3],\"dtype\":\"F32\",\"layout\":"
                + "\"1:R\"},\"b\":{\"shape\":[4],\"layout\":\"1:R\"}}}")
            .getBytes(StandardCharsets.UTF_8);
    byte[] index =
        ("{\"metadata\":{\"total_size\":28},\"weight_map\":{\"a\":\"model-1.safetensors\","
                + "\"b\":\"model-1.safetensors\"}}")
            .getBytes(StandardCharsets.UTF_8);
    switch (form) {
      case 0 -> {
        Files.write(folder.resolve("whole.safetensors"), mutation.apply(file));
        return folder.resolve("whole.safetensors");
      }
      case 1 -> {
        Files.write(folder.resolve("rank-00000.safetensors"), mutation.apply(file));
      }
      case 2 -> {
        Files.write(folder.resolve("rank-00000.safetensors"), file);
        Files.write(folder.resolve("layout.json"), mutation.apply(layouts));
      }
      default -> {
        Files.write(folder.resolve("model-1.safetensors"), file);
        Files.write(folder.resolve("model.safetensors.index.json"), mutation.apply(index));
      }
    }
    return folder;
  }

  private static byte[] safetensors() {
    return SafetensorsBytes.of(
        "{\"__metadata__\":{\"format\":\"pt\"},\"a\":{\"dtype\":\"F32\",\"shape\":[2,3],"
            + "\"data_offsets\":[0,24]},\"b\":{\"dtype\":\"U8\",\"shape\":[4],"
            + "\"data_offsets\":[24,28]}}",
        new byte[28]);
  }
}
