// SPDX-License-Identifier: Apache-2.0
package org.windlass.checkpoint;

import static org.assertj.core.api.Assertions.assertThat;

import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;
import org.windlass.DType;
import org.windlass.testing.WithoutNatives;

/** Calls of a process that finds no natives. */
@Timeout(120)
class WithoutNativesTest {
  @TempDir Path folder;

  static final class Caller {
    public static void main(String[] arguments) {
      Path folder = Path.of(arguments[0]);
      List<SafetensorsHeader.Item> items =
          List.of(new SafetensorsHeader.Item("w", DType.U8, List.of(1L)));
      Map<String, Runnable> calls = new LinkedHashMap<>();
      calls.put(
          "SafetensorsWriter.create",
          () -> SafetensorsWriter.create(folder.resolve("new"), items, Map.of()));
      calls.put(
          "CheckpointWriter.commit",
          () -> {
            try (CheckpointWriter writer = CheckpointWriter.begin(folder.resolve("out"), false)) {
              writer.text("a", new byte[1]);
              writer.commit();
            }
          });
      calls.put(
          "SafetensorsFile.tensor",
          () -> {
            try (SafetensorsFile file = SafetensorsFile.open(folder.resolve("x.safetensors"))) {
              file.tensor("x");
            }
          });
      WithoutNatives.make(calls);
    }
  }

  @Test
  void eachCallIsRefusedInTheSameWords() throws Exception {
    String header = "{\"x\":{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[0,1]}}";
    Files.writeString(
        folder.resolve("x.safetensors"),
        (char) header.length() + "\0".repeat(7) + header + "x",
        StandardCharsets.ISO_8859_1);
    WithoutNatives.requireRefused(Caller.class, 3, folder);
    assertThat(folder.toFile().list()).containsExactly("x.safetensors");
  }
}
