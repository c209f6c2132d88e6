// SPDX-License-Identifier: Apache-2.0
import java.time.Duration;
import org.windlass.Communicator;
import org.windlass.DType;
import org.windlass.LocalGroup;
import org.windlass.Tensor;
import org.windlass.layout.DeviceMesh;
import org.windlass.layout.Placement;
import org.windlass.link.Link;

public final class WeightLink {
  private static final long[] SHAPE = {8, 4};
  private static final Duration SOON = Duration.ofSeconds(30);

  public static void main(String[] args) {
    try (var group = LocalGroup.of(4)) {
      group.run(WeightLink::sync);
    }
  }

  private static void sync(Communicator comm) {
    var trainers = DeviceMesh.of(2); // ranks 0 and 1
    var fleet = DeviceMesh.of(2).at(2); // ranks 2 and 3
    var replicated = trainers.layout(Placement.replicate());
    var rows = fleet.layout(Placement.shard(0));
    try (var link = Link.open(comm, "weights", trainers, fleet)) {
      var builder = link.transferBuilder();
      if (link.sends()) {
        try (var weight = Tensor.allocate(DType.F32, SHAPE);
            var transfer = builder.add("w", SHAPE, weight, replicated).register(SOON)) {
          for (long version = 1; version <= 3; version++) {
            weight.fill(version); // a step of training
            transfer.send(version);
          }
          transfer.finish();
        }
      } else {
        try (var weight = Tensor.allocate(DType.F32, 4, 4);
            var transfer = builder.into("w", SHAPE, weight, rows).register(SOON)) {
          while (!transfer.isFinished()) {
            transfer.tryReceive(SOON).ifPresent(version ->
                System.out.println(comm + " serves version " + version + ": "
                    + transfer.tensor("w").getDouble(3, 3)));
          }
        }
      }
    }
  }
}
