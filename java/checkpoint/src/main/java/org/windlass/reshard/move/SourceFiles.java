// SPDX-License-Identifier: Apache-2.0
package org.windlass.reshard.move;

import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import org.windlass.checkpoint.Checkpoint;
import org.windlass.checkpoint.SafetensorsFile;
import org.windlass.layout.Layout;
import org.windlass.layout.Placement;
import org.windlass.reshard.tensor.ByteIndices;
import org.windlass.reshard.tensor.Runs;
import org.windlass.reshard.tensor.SourceTensor;
import org.windlass.reshard.tensor.TensorMove;

/**
 * Finds the files that hold the elements of a move's source. For each term of its reduction, or the
 * only one, several files together hold the tensor. Of replicas, the first counts.
 */
final class SourceFiles {
  /** Describes the part of a term in one file. */
  private record Part(SafetensorsFile file, Runs runs) {}

  private final TensorMove move;
  private final ByteIndices indices;
  private final List<List<Part>> terms = new ArrayList<>();

  SourceFiles(Checkpoint in, TensorMove move) {
    SourceTensor tensor = move.source();
    this.move = move;
    this.indices = new ByteIndices(tensor.dtype());
    if (!in.byRank()) {
      Runs all = indices.runs(Runs.whole(tensor.shape()));
      terms.add(List.of(new Part(in.whole(tensor.stored()), all)));
      return;
    }
    Map<List<Integer>, List<Part>> byTerm = new LinkedHashMap<>();
    for (int part = 0; part < tensor.division().layouts().size(); part++) {
      add(in, tensor, byTerm, part);
    }
    terms.addAll(byTerm.values());
  }

  /** Adds the files that hold one part of a fused tensor, or all of another one. */
  private void add(
      Checkpoint in, SourceTensor tensor, Map<List<Integer>, List<Part>> byTerm, int part) {
    Layout layout = tensor.division().layouts().get(part);
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
        byTerm
            .computeIfAbsent(term, key -> new ArrayList<>())
            .add(
                new Part(
                    Objects.requireNonNull(in.ranks().get(rank)),
                    indices.runs(tensor.division().held(tensor.shape(), rank, part))));
      }
    }
  }

  TensorMove move() {
    return move;
  }

  /** Returns the conversion of the source's indices. */
  ByteIndices indices() {
    return indices;
  }

  /** Returns the bits in which an element crosses ranks. */
  int wireBits() {
    return Math.max(move.effectiveWire().bits(), Byte.SIZE);
  }

  /** Returns the number of terms from which one element is reduced; 1 without a reduction. */
  int terms() {
    return terms.size();
  }

  /**
   * Reads a box of the stored tensor.
   *
   * @param into receives the box of each term, one after another
   */
  void read(
      long[] start, long[] shape, Room.Piece into, ByteBuffer scratch, Team team) {
    long[] block = new long[shape.length + 1];
    block[0] = terms();
    System.arraycopy(shape, 0, block, 1, shape.length);
    for (int term = 0; term < terms(); term++) {
      for (Part part : terms.get(term)) {
        for (Runs.Box box : part.runs().within(start, shape)) {
          long[] place = box.global();
          Arrays.setAll(place, d -> place[d] - start[d]);
          new FileBox(
                  indices.memory().bytes(),
                  leading(1, part.runs().shape()),
                  leading(0, box.local()),
                  leading(1, box.shape()),
                  block,
                  leading(term, place))
              .read(part.file(), move.source().stored(), into.bytes(), scratch, team);
        }
      }
    }
  }

  private static long[] leading(long first, long[] rest) {
    long[] all = new long[rest.length + 1];
    all[0] = first;
    System.arraycopy(rest, 0, all, 1, rest.length);
    return all;
  }
}
