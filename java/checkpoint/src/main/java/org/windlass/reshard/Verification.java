// SPDX-License-Identifier: Apache-2.0
package org.windlass.reshard;

import java.nio.file.Path;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.function.Function;
import org.windlass.checkpoint.Checkpoint;
import org.windlass.checkpoint.SafetensorsFile;
import org.windlass.reshard.output.Output;
import org.windlass.reshard.request.MoveList;
import org.windlass.reshard.tensor.SourceTensor;
import org.windlass.reshard.tensor.TargetTensor;
import org.windlass.reshard.tensor.TensorMove;
import org.windlass.verify.SlowCheck;
import org.windlass.verify.SourcePart;

/**
 * Runs the requested verification: compares source replicas, and then the result with the source.
 */
record Verification(Checkpoint in, MoveList list, Cancellation cancellation) {
  /**
   * Compares the replicas of every source tensor.
   *
   * @throws org.windlass.error.VerificationFailedException naming tensor, index and both ranks
   */
  void compareReplicas() {
    Map<String, TensorMove> sources = new LinkedHashMap<>();
    list.moves().forEach(move -> sources.putIfAbsent(move.source().name(), move));
    sources.values().forEach(move -> part(move).compareReplicas(cancellation::check));
  }

  /**
   * Reads the written tensors and compares them with the values computed from the source tensors.
   *
   * @throws org.windlass.error.VerificationFailedException naming tensor, index and both ranks
   */
  void compare(Output output) {
    Map<TargetTensor, List<SourcePart>> parts = new LinkedHashMap<>();
    for (TensorMove move : list.moves()) {
      List<SourcePart> made = parts.computeIfAbsent(move.target(), key -> new ArrayList<>());
      for (TensorMove.Segment segment : move.segments()) {
        made.add(part(move).placed(move.axes().stored(), move.dim(), segment));
      }
    }
    Map<Path, SafetensorsFile> reread = new HashMap<>();
    Function<TargetTensor, Map<Integer, Output.Place>> places = output.places();
    try {
      parts.forEach(
          (target, made) -> {
            SlowCheck check = new SlowCheck(target.name(), target.shape(), made, cancellation::check);
            for (Map.Entry<Integer, Output.Place> place : places.apply(target).entrySet()) {
              int rank = place.getKey();
              SafetensorsFile file =
                  reread.computeIfAbsent(
                      place.getValue().file().path(), SafetensorsFile::open);
              if (output.isWhole()) {
                check.compareWhole(file);
              } else {
                check.compareRank(target.division(), rank, file);
              }
            }
          });
    } finally {
      reread.values().forEach(SafetensorsFile::close);
    }
  }

  private SourcePart part(TensorMove move) {
    SourceTensor source = move.source();
    Optional<SafetensorsFile> whole =
        in.byRank() ? Optional.empty() : Optional.of(in.whole(source.stored()));
    return new SourcePart(
        source.stored(), source.shape(), source.division(), move.wire(), whole, in.ranks()::get);
  }
}
