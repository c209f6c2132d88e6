// SPDX-License-Identifier: Apache-2.0
package org.windlass;

import static org.assertj.core.api.Assertions.assertThat;

import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;
import org.windlass.checkpoint.CheckpointWriter;
import org.windlass.checkpoint.SafetensorsFile;
import org.windlass.checkpoint.SafetensorsHeader.Item;
import org.windlass.checkpoint.SafetensorsWriter;

/** Calls of a process that finds no natives: each gets the same exception, as often as it is made. */
@Timeout(120)
class WithoutNativesTest {
  @TempDir Path folder;

  /** Makes each call three times and prints what it threw. */
  static final class Caller {
    public static void main(String[] arguments) {
      Path folder = Path.of(arguments[0]);
      Map<String, Runnable> calls = new LinkedHashMap<>();
      calls.put("Communicator.local", () -> Communicator.local(2).close());
      calls.put("Tensor.allocate", () -> Tensor.allocate(DType.F32, 4));
      calls.put("Tensor.of", () -> Tensor.of(ByteBuffer.allocateDirect(8), DType.U8, 8));
      calls.put("Tensor.of address", () -> Tensor.of(8, 8, null, DType.U8, 8));
      calls.put("Target.available", Target.SIM::available);
      calls.put("Target.require", Target.CUDA::require);
      calls.put(
          "SafetensorsWriter.create",
          () ->
              SafetensorsWriter.create(
                  folder.resolve("new"), List.of(new Item("w", DType.U8, List.of(1L))), Map.of()));
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
      for (int i = 0; i < 3; i++) {
        calls.forEach(
            (name, call) -> {
              try {
                call.run();
                System.out.println(name + ": nothing");
              } catch (Throwable thrown) {
                System.out.println(
                    name + ": " + thrown.getClass().getSimpleName() + ": "
                        + String.valueOf(thrown.getMessage()).lines().findFirst().orElse(""));
              }
            });
      }
    }
  }

  @Test
  void eachCallIsRefusedInTheSameWords() throws Exception {
    String header = "{\"x\":{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[0,1]}}";
    Files.writeString(
        folder.resolve("x.safetensors"),
        (char) header.length() + "\0".repeat(7) + header + "x",
        StandardCharsets.ISO_8859_1);
    Process process =
        new ProcessBuilder(
                Path.of(System.getProperty("java.home"), "bin", "java").toString(),
                "-Xmx128m",
                "-Dorg.windlass.library.path=/nonexistent",
                "-cp",
                System.getProperty("java.class.path"),
                Caller.class.getName(),
                folder.toString())
            .redirectErrorStream(true)
            .start();
    String said = new String(process.getInputStream().readAllBytes(), StandardCharsets.UTF_8);
    assertThat(process.waitFor()).as(said).isZero();
    assertThat(said.lines())
        .hasSize(27)
        .allMatch(
            line -> line.matches("[^:]+: UnsupportedException: cannot load the Windlass natives .*"));
    assertThat(folder.toFile().list()).containsExactly("x.safetensors");
  }
}
