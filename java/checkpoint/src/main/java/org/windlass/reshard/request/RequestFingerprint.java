// SPDX-License-Identifier: Apache-2.0
package org.windlass.reshard.request;

import java.util.Arrays;
import org.windlass.checkpoint.Checkpoint;
import org.windlass.checkpoint.SafetensorsEntry;
import org.windlass.checkpoint.SafetensorsFile;
import org.windlass.internal.Fingerprint;
import org.windlass.reshard.tensor.Division;
import org.windlass.reshard.tensor.SourceTensor;
import org.windlass.reshard.tensor.TargetTensor;
import org.windlass.reshard.tensor.TensorMove;

/**
 * Computes a hash of everything that determines a run's steps and files. Processes with equal
 * hashes perform the same steps and have the same files.
 */
public final class RequestFingerprint {
  private final Fingerprint fingerprint = new Fingerprint();

  private RequestFingerprint() {}

  /** Returns the hash of a request, of IN's headers and of the moves. */
  public static long of(ReshardRequest request, Checkpoint in, MoveList list) {
    RequestFingerprint all = new RequestFingerprint();
    all.add(
        request.mode, request.bucketBytes, request.writesWhole(), request.maxShardBytes);
    all.add(list.metadata(), list.targetRanks());
    for (SafetensorsFile file : in.files()) {
      all.add(file.path().getFileName(), file.header().dataStart(), file.header().fileBytes());
      for (SafetensorsEntry entry : file.header().tensors()) {
        all.add(entry.name(), entry.begin());
      }
    }
    list.targets().forEach(all::addTarget);
    list.moves().forEach(all::addMove);
    return all.fingerprint.value();
  }

  private void addTarget(TargetTensor target) {
    add(target.name(), target.shapeList(), target.dtype(), target.firstRank());
    addDivision(target.division());
  }

  private void addDivision(Division division) {
    add(division.padded(), division.dim(), division.extents());
    division.layouts().forEach(layout -> add(layout.qualified()));
  }

  private void addMove(TensorMove move) {
    SourceTensor source = move.source();
    add(source.name(), source.stored(), Arrays.toString(source.shape()), source.dtype());
    addDivision(source.division());
    add(move.axes(), move.target().name(), move.dim(), move.segments(), move.wire());
  }

  private void add(Object... facts) {
    for (Object fact : facts) {
      fingerprint.add(fact.toString());
    }
  }
}
