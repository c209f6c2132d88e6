// SPDX-License-Identifier: Apache-2.0
package org.windlass.reshard.move;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import org.windlass.Tensor;
import org.windlass.checkpoint.Checkpoint;
import org.windlass.layout.Layout;
import org.windlass.layout.Placement;
import org.windlass.reshard.tensor.Runs;
import org.windlass.reshard.tensor.SourceTensor;

/**
 * Finds the files that hold the elements of a source tensor. For each term of its reduction, or the
 * only one, several files together hold the tensor. Of replicas, the first counts.
 */
final class SourceFiles {
  /** Describes the part of a term in one file. */
  private record Part(Stored stored, Runs runs) {}

  private final SourceTensor tensor;
  private final List<List<Part>> terms = new ArrayList<>();

  SourceFiles(Checkpoint in, SourceTensor tensor) {
    this.tensor = tensor;
    if (!in.byRank()) {
      terms.add(
          List.of(
              new Part(
                  new Stored(in.whole(tensor.stored()), tensor.stored()),
                  Runs.whole(tensor.shape()))));
      return;
    }
    Layout layout = tensor.from();
    Map<List<Integer>, List<Part>> byTerm = new LinkedHashMap<>();
    for (int rank : layout.mesh().ranks()) {
      int[] coordinates = Objects.requireNonNull(layout.mesh().coordinates(rank));
      List<Integer> term = new ArrayList<>();
      boolean first = true;
      for (int m = 0; m < coordinates.length; m++) {
        if (layout.placements().get(m) instanceof Placement.Partial) {
          term.add(coordinates[m]);
        } else if (layout.placements().get(m) instanceof Placement.Replicate) {
          first &= coordinates[m] == 0;
        }
      }
      if (first) {
        Stored stored = new Stored(Objects.requireNonNull(in.ranks().get(rank)), tensor.stored());
        byTerm
            .computeIfAbsent(term, key -> new ArrayList<>())
            .add(new Part(stored, Runs.of(layout, tensor.shape(), rank)));
      }
    }
    terms.addAll(byTerm.values());
  }

  /** Returns the number of terms from which one element is reduced; 1 without a reduction. */
  int terms() {
    return terms.size();
  }

  /**
   * Returns the reads of a box of the tensor.
   *
   * @param memory receives the box, packed
   */
  List<FileRead> reads(int term, long[] start, long[] shape, Tensor memory) {
    List<FileRead> reads = new ArrayList<>();
    for (Part part : terms.get(term)) {
      for (Runs.Box box : part.runs().within(start, shape)) {
        long[] at = box.global();
        Arrays.setAll(at, d -> at[d] - start[d]);
        new FileRead(
                part.stored(),
                tensor.dtype().bytes(),
                part.runs().shape(),
                box.local(),
                box.shape(),
                shape,
                at,
                memory)
            .split(reads);
      }
    }
    return reads;
  }
}
