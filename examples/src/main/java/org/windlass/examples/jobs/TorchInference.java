// SPDX-License-Identifier: Apache-2.0
package org.windlass.examples.jobs;

import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.ShortBuffer;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import org.windlass.DType;
import org.windlass.Tensor;
import org.windlass.error.VerificationFailedException;
import org.windlass.job.Job;
import org.windlass.job.Role;
import org.windlass.layout.DeviceMesh;
import org.windlass.layout.Layout;
import org.windlass.layout.Placement;
import org.windlass.layout.Region;
import org.windlass.link.LinkTransfer;

/**
 * Runs the inference job of the example torch-trainer. It holds the model's matrices cut by columns
 * and its vectors whole, in bf16. It compares each step with the result of torch's own cast.
 */
final class TorchInference {
  /** A parameter, in the order in which torch lists them. */
  private record Parameter(String name, long... shape) {
    Layout layout(Job job) {
      DeviceMesh ranks = DeviceMesh.of("tp", job.communicator().size());
      return ranks.layout(shape.length == 1 ? Placement.replicate() : Placement.shard(1));
    }

    int count() {
      return (int) (shape[0] * (shape.length == 1 ? 1 : shape[1]));
    }
  }

  private static final List<Parameter> MODEL =
      List.of(
          new Parameter("0.weight", 96, 64),
          new Parameter("0.bias", 96),
          new Parameter("2.weight", 96),
          new Parameter("2.bias", 96),
          new Parameter("3.weight", 33, 96),
          new Parameter("3.bias", 33));

  private TorchInference() {}

  public static void main(String[] arguments) throws Exception {
    Parent.lines();
    Path casts = Path.of(arguments[1]);
    WeightSyncJobs.inJob(arguments[0], job -> infer(job, casts));
  }

  private static void infer(Job job, Path casts) {
    try (var link = job.connect(WeightSyncJobs.LINK, Role.TARGET, WeightSyncJobs.LIMIT)) {
      var builder = link.transferBuilder();
      for (Parameter each : MODEL) {
        Layout layout = each.layout(job);
        long[] local = layout.localShape(each.shape, job.communicator().rank());
        builder.into(each.name, each.shape, Tensor.allocate(DType.BF16, local), layout);
      }
      try (LinkTransfer transfer = builder.register(WeightSyncJobs.LIMIT)) {
        for (long step = 1; step <= TorchTrainer.STEPS; step++) {
          long version = transfer.receive(WeightSyncJobs.LIMIT);
          if (version != step) {
            throw new VerificationFailedException("step " + version + " came for step " + step);
          }
          long count = check(job, transfer, cast(casts.resolve("step-" + step)));
          WeightSyncJobs.say(job, "step " + step + ": " + count + " values are torch's own");
        }
      }
    }
  }

  /** Reads torch's cast of all parameters, one after the other. */
  private static ShortBuffer cast(Path file) {
    try {
      return ByteBuffer.wrap(Files.readAllBytes(file))
          .order(ByteOrder.nativeOrder())
          .asShortBuffer();
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }
  }

  /**
   * Returns the number of this rank's values. Throws unless each equals torch's cast, bit for bit.
   */
  private static long check(Job job, LinkTransfer transfer, ShortBuffer cast) {
    int first = 0;
    long checked = 0;
    for (Parameter each : MODEL) {
      Region region = each.layout(job).localRegion(each.shape, job.communicator().rank());
      ShortBuffer found = transfer.tensor(each.name).asByteBuffer().asShortBuffer();
      long width = each.shape.length == 1 ? 1 : each.shape[1];
      Region.Interval rows = region.intervals(0).get(0);
      long from = each.shape.length == 1 ? 0 : region.intervals(1).get(0).start();
      long to = each.shape.length == 1 ? 1 : region.intervals(1).get(0).end();
      for (long row = rows.start(); row < rows.end(); row++) {
        for (long column = from; column < to; column++) {
          short wanted = cast.get(first + (int) (row * width + column));
          short value = found.get();
          if (value != wanted) {
            throw new VerificationFailedException(
                String.format(
                    "%s at %d, %d has the bits %04x; torch's cast has %04x",
                    each.name, row, column, value & 0xffff, wanted & 0xffff));
          }
          checked++;
        }
      }
      first += each.count();
    }
    return checked;
  }
}
