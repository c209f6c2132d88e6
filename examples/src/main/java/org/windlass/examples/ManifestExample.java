// SPDX-License-Identifier: Apache-2.0
package org.windlass.examples;

import java.io.IOException;
import java.io.PrintStream;
import java.io.UncheckedIOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.Optional;
import org.windlass.Communicator;
import org.windlass.DType;
import org.windlass.DistributedTensor;
import org.windlass.LocalGroup;
import org.windlass.Tensor;
import org.windlass.layout.DeviceMesh;
import org.windlass.layout.Placement;
import org.windlass.layout.TensorSpec;
import org.windlass.manifest.CommContext;
import org.windlass.manifest.CommContexts;
import org.windlass.manifest.CommGroup;
import org.windlass.manifest.CommManifest;
import org.windlass.manifest.ElementType;
import org.windlass.manifest.HostTensors;
import org.windlass.manifest.Slot;
import org.windlass.transfer.TransferBuilder;

/**
 * Shows weight sync from a comm manifest that was written ahead of time. It names two groups with a
 * device in common, trainers and a fleet. Each group has a slot for its part of one weight.
 *
 * <p>Opening the manifest loads the trainers' slots from host tensors. A transfer moves the weight
 * to the fleet's slots, with another dtype and another number of devices. The fleet's slots are
 * then stored to host tensors.
 */
public final class ManifestExample {
  private static final String WEIGHT = "weight";
  private static final int ROWS = 8;
  private static final int COLUMNS = 96;

  private ManifestExample() {}

  public static void main(String[] args) {
    Examples.main(ManifestExample::run, args);
  }

  static void run(LocalGroup group, int ranks, PrintStream out) {
    int shared = ranks / 2; // last trainer, and first device of the fleet
    DeviceMesh trainers = DeviceMesh.of("trainer", shared + 1);
    DeviceMesh fleet = DeviceMesh.of("server", ranks - shared).at(shared);
    long rows = (long) ROWS * trainers.size() * fleet.size();
    TensorSpec trained =
        TensorSpec.of(WEIGHT, DType.F32, trainers.layout(Placement.shard(0)), rows, COLUMNS);
    TensorSpec served =
        TensorSpec.of(WEIGHT, DType.BF16, fleet.layout(Placement.shard(0)), rows, COLUMNS);

    CommManifest manifest = throughAFile(manifest(trained, served));
    group.run(comm -> sync(comm, manifest, trained, served));
    out.printf(
        "manifest: a weight of %d rows from %s to %s, every value equals the golden one%n",
        rows, trainers, fleet);
  }

  /**
   * Builds the manifest that a compiler knows ahead of time: the devices of each group, and the
   * contents of its window.
   */
  private static CommManifest manifest(TensorSpec trained, TensorSpec served) {
    // A slot has the same size on each device of its group, and so do the parts of the weight.
    long elements = trained.localRegion(0).numel();
    Slot loaded =
        new Slot(WEIGHT, new Slot.Elements(ElementType.FLOAT32, elements), true, false);
    elements = served.localRegion(served.layout().mesh().lowestRank()).numel();
    Slot stored =
        new Slot(WEIGHT, new Slot.Elements(ElementType.BFLOAT16, elements), false, true);
    return new CommManifest(
        List.of(
            new CommGroup(
                Optional.of("trainers"), trained.layout().mesh().ranks(), List.of(loaded)),
            new CommGroup(Optional.of("fleet"), served.layout().mesh().ranks(), List.of(stored))));
  }

  /**
   * Writes the manifest to a file and reads it. A program reads such a file with
   * {@code CommManifest.fromEnvironment()}.
   */
  private static CommManifest throughAFile(CommManifest manifest) {
    try {
      Path file = Files.createTempFile("comm_manifest", ".json");
      manifest.write(file);
      CommManifest read = CommManifest.read(file);
      Files.delete(file);
      return read;
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }
  }

  private static void sync(
      Communicator comm, CommManifest manifest, TensorSpec trained, TensorSpec served) {
    HostTensors hosts = HostTensors.none();
    Tensor result = null;
    if (trained.layout().mesh().contains(comm.rank())) {
      hosts = hosts.and("trainers", WEIGHT, Golden.rows(trained, comm.rank()));
    }
    if (served.layout().mesh().contains(comm.rank())) {
      result = Tensor.allocate(DType.BF16, served.localShape(comm.rank()));
      hosts = hosts.and("fleet", WEIGHT, result);
    }

    try (CommContexts contexts = manifest.open(comm, hosts)) {
      DistributedTensor source = slot(contexts.find("trainers"), trained, comm.rank());
      DistributedTensor target = slot(contexts.find("fleet"), served, comm.rank());
      try (var transfer =
          TransferBuilder.of(comm).add(trained, source, served, target).register()) {
        transfer.run();
      }
      contexts.storeToHost();
    }

    if (result != null) {
      long first = served.localRegion(comm.rank()).intervals(0).get(0).start();
      for (long row = 0; row < result.shape()[0]; row++) {
        Golden.checkRow(result, row, WEIGHT, first + row);
      }
    }
  }

  /**
   * Returns the slot as a tensor of its rows, or null on a device that is only in the other group.
   */
  private static DistributedTensor slot(Optional<CommContext> group, TensorSpec spec, int rank) {
    return group
        .map(context -> context.tensor(WEIGHT).reshape(spec.localShape(rank)))
        .orElse(null);
  }
}
