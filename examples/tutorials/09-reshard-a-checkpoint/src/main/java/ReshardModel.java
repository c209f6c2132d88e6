// SPDX-License-Identifier: Apache-2.0
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import org.windlass.DType;
import org.windlass.checkpoint.Checkpoint;
import org.windlass.layout.Layout;
import org.windlass.reshard.Reshard;

/** Cuts small.safetensors into rows for two ranks, in bf16. */
public final class ReshardModel {
  public static void main(String[] args) throws IOException {
    Path rules = Files.writeString(Path.of("rules.json"), """
        [{"match": "*norm.weight", "to": "2:R", "dtype": "f32"}]
        """);
    var result =
        Reshard.from(Layout.parse("1:R"))
            .to("2@0:S0")
            .in(Path.of("small.safetensors"))
            .out(Path.of("two-ranks"))
            .rules(rules)
            .dtype(DType.BF16)
            .verify()
            .force() // replaces what an earlier run wrote
            .run();
    System.out.println("wrote " + result.tensors() + " tensors, verified: " + result.verified());

    try (var written = Checkpoint.open(Path.of("two-ranks"))) {
      written.ranks().forEach((rank, file) -> {
        try (var up = file.tensor("layers.0.up.weight")) {
          System.out.println("rank " + rank + " has " + up.shape()[0] + " rows, the first is "
              + up.getDouble(0, 0));
        }
      });
    }
  }
}
