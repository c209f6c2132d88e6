// SPDX-License-Identifier: Apache-2.0
package org.windlass.consumer;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.Map;
import java.util.concurrent.atomic.AtomicLong;
import java.util.stream.Stream;
import org.windlass.DType;
import org.windlass.Tensor;
import org.windlass.checkpoint.Checkpoint;
import org.windlass.checkpoint.SafetensorsFile;
import org.windlass.checkpoint.SafetensorsHeader;
import org.windlass.checkpoint.SafetensorsWriter;
import org.windlass.error.AbortedException;
import org.windlass.layout.Layout;
import org.windlass.reshard.Reshard;
import org.windlass.reshard.ReshardResult;

/** A checkpoint is resharded with its progress, and another run is cancelled in its middle. */
public final class Reshards {
  private static final long ROWS = 1 << 14;
  private static final long COLUMNS = 1 << 13;

  private Reshards() {}

  public static void main(String[] arguments) throws IOException {
    Path folder = Files.createTempDirectory(Path.of(arguments[0]), "reshards");
    Path in = folder.resolve("in.safetensors");
    var weight = new SafetensorsHeader.Item("weight", DType.F32, List.of(ROWS, COLUMNS));
    var bias = new SafetensorsHeader.Item("bias", DType.F32, List.of(4L));
    try (SafetensorsWriter file = SafetensorsWriter.create(in, List.of(weight, bias), Map.of());
        Tensor values = Tensor.allocate(DType.F32, 4)) {
      values.copyFrom(new float[] {1, 2, 3, 4});
      file.write("bias", 0, values.asByteBuffer());
    }
    reshard(in, folder.resolve("out"));
    System.out.println("resharded");
    cancel(in, folder.resolve("cancelled"));
    try (Stream<Path> left = Files.list(folder)) {
      require(left.count() == 2, "IN and the first OUT alone are left");
    }
    System.out.println("cancelled");
  }

  private static void reshard(Path in, Path out) throws IOException {
    AtomicLong heard = new AtomicLong();
    ReshardResult result =
        Reshard.from(Layout.parse("1:R"))
            .to("2:S0")
            .in(in)
            .out(out)
            .dtype(DType.BF16)
            .progress(
                (moved, total) -> {
                  require(moved >= heard.getAndSet(moved) && moved <= total, "progress grows");
                })
            .run();
    require(heard.get() == result.bytesOut(), "progress ends with all bytes");
    require(result.bytesOut() == 2 * (ROWS * COLUMNS + 4), "every tensor is written once, in bf16");
    try (Checkpoint written = Checkpoint.open(out)) {
      double next = 1;
      for (SafetensorsFile file : written.ranks().values()) {
        Tensor bias = file.tensor("bias");
        require(bias.dtype() == DType.BF16 && bias.numel() == 2, "a rank has its half");
        for (long i = 0; i < 2; i++) {
          require(bias.getDouble(i) == next++, "values are kept");
        }
      }
      require(next == 5, "all values are there");
    }
  }

  private static void cancel(Path in, Path out) {
    Reshard reshard = Reshard.from(Layout.parse("1:R")).to("2:S1").in(in).out(out).verify();
    reshard.progress(
        (moved, total) -> {
          if (moved < total) {
            reshard.cancel();
          }
        });
    try {
      reshard.run();
    } catch (AbortedException cancelled) {
      return;
    }
    throw new AssertionError("a cancelled run ended as if it were not");
  }

  private static void require(boolean holds, String what) {
    if (!holds) {
      throw new AssertionError("not so: " + what);
    }
  }
}
