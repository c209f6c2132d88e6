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
 * Weight sync from a manifest: a comm manifest, written ahead of time, names two groups that have a
 * device in common, trainers and a fleet, and a slot of each for its part of one weight. Opening it
 * loads the trainers' slots from host tensors, a transfer moves the weight to the fleet's slots, in
 * another dtype and over another number of devices, and those are stored to host tensors.
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
    int shared = ranks / 2; // the last trainer, and the first device of the fleet
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
   * What a compiler knows ahead of time: the devices of each group, and what lies in its window.
   */
  private static CommManifest manifest(TensorSpec trained, TensorSpec served) {
    // A slot is as large on each of its group's devices, and so are their parts of the weight.
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

  /** A program finds such a file by {@code CommManifest.fromEnvironment()}. */
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

  /** The slot as the rows that it holds; null on a device that is in the other group alone. */
  private static DistributedTensor slot(Optional<CommContext> group, TensorSpec spec, int rank) {
    return group
        .map(context -> context.tensor(WEIGHT).reshape(spec.localShape(rank)))
        .orElse(null);
  }
}
