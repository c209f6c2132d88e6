// SPDX-License-Identifier: Apache-2.0
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.Map;
import org.windlass.DType;
import org.windlass.Tensor;
import org.windlass.checkpoint.SafetensorsHeader.Item;
import org.windlass.checkpoint.SafetensorsWriter;

/** Writes small.safetensors, a checkpoint of two whole tensors. */
public final class WriteModel {
  public static void main(String[] args) throws IOException {
    var path = Path.of("small.safetensors");
    Files.deleteIfExists(path);
    var up = new Item("layers.0.up.weight", DType.F32, List.of(8L, 4L));
    var norm = new Item("layers.0.norm.weight", DType.F32, List.of(4L));
    try (var file = SafetensorsWriter.create(path, List.of(up, norm), Map.of());
        var rows = Tensor.allocate(DType.F32, 8, 4);
        var ones = Tensor.allocate(DType.F32, 4).fill(1)) {
      for (int row = 0; row < 8; row++) {
        rows.select(0, row).fill(row);
      }
      file.write(up.name(), 0, rows.asByteBuffer());
      file.write(norm.name(), 0, ones.asByteBuffer());
    }
    System.out.println("wrote " + path);
  }
}
