// SPDX-License-Identifier: Apache-2.0
package org.windlass.reshard.request;

import java.util.List;
import org.windlass.checkpoint.Checkpoint;
import org.windlass.checkpoint.SafetensorsFile;
import org.windlass.internal.Fingerprint;
import org.windlass.layout.Layout;
import org.windlass.reshard.tensor.Division;
import org.windlass.reshard.tensor.SourceTensor;
import org.windlass.reshard.tensor.TargetTensor;
import org.windlass.reshard.tensor.TensorMove;

/**
 * Computes a hash of everything that determines a run's steps and files. Processes with equal
 * hashes run the same steps and write the same files.
 */
public final class RequestFingerprint {
  private RequestFingerprint() {}

  /** Returns the hash of a request, of IN's headers and of the moves. */
  public static long of(ReshardRequest request, Checkpoint in, MoveList list) {
    Fingerprint all = new Fingerprint();
    add(all, request.mode, request.bucketBytes, request.writesWhole(), request.maxShardBytes);
    add(all, list.metadata(), list.targetRanks());
    for (SafetensorsFile file : in.files()) {
      add(all, file.path().getFileName(), file.header().dataStart(), file.header().fileBytes());
      file.header().tensors().forEach(entry -> add(all, entry.name(), entry.begin()));
    }
    for (TensorMove move : list.moves()) {
      SourceTensor source = move.source();
      TargetTensor target = move.target();
      add(all, source.name(), source.stored(), source.shapeList(), source.dtype());
      add(all, facts(source.division()));
      add(all, target.name(), target.shapeList(), target.dtype(), target.firstRank());
      add(all, facts(target.division()));
      add(all, move.axes(), move.dim(), move.segments(), move.wire());
    }
    return all.value();
  }

  private static List<Object> facts(Division division) {
    List<String> layouts = division.layouts().stream().map(Layout::qualified).toList();
    return List.of(division.padded(), division.dim(), division.extents(), layouts);
  }

  private static void add(Fingerprint all, Object... facts) {
    for (Object fact : facts) {
      all.add(fact.toString());
    }
  }
}
