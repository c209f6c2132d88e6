// SPDX-License-Identifier: Apache-2.0
package org.windlass.reshard.move;

import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import org.windlass.DType;
import org.windlass.checkpoint.Checkpoint;
import org.windlass.checkpoint.SafetensorsFile;
import org.windlass.layout.Layout;
import org.windlass.layout.Placement;
import org.windlass.reshard.tensor.ByteIndices;
import org.windlass.reshard.tensor.Runs;
import org.windlass.reshard.tensor.SourceTensor;
import org.windlass.reshard.tensor.TensorMove;

/**
 * Finds the files that hold the source of a move. Several files together hold a tensor. A Partial
 * tensor has several terms, and several files together hold each term. If there are replicas, only
 * the first one is used. Indices are those of {@link ByteIndices}. They include the padding that
 * the files hold.
 */
final class SourceFiles {
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

  /** Adds the files of one part of a fused tensor, or of a tensor without parts. */
  private void add(
      Checkpoint in, SourceTensor tensor, Map<List<Integer>, List<Part>> byTerm, int part) {
    Layout layout = tensor.division().layouts().get(part);
    long[] shape = tensor.division().paddedShape();
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
                    indices.runs(tensor.division().held(shape, rank, part))));
      }
    }
  }

  TensorMove move() {
    return move;
  }

  /** Returns the ranges of indices that move. */
  List<TensorMove.Segment> segments() {
    return indices.segments(move);
  }

  /** Returns the extents of the source, in the order of the target's dimensions. */
  long[] shape() {
    return indices.shape(move.shape());
  }

  /** Returns the number of terms from which one element is reduced; 1 without a reduction. */
  int terms() {
    return terms.size();
  }

  DType dtype() {
    return indices.memory();
  }

  /** Returns the dtype to which elements are cast before they are cast to the target's dtype. */
  DType wire(boolean staged) {
    DType own = move.source().dtype();
    DType wire = staged ? move.effectiveWire() : move.wire().orElse(own);
    return wire == own || !staged && wire == move.target().dtype() ? dtype() : wire;
  }

  /** Returns the number of bytes, in the wire dtype, of an element of {@link #dtype}. */
  long wireBytes() {
    return Math.max(move.effectiveWire().bits() / Byte.SIZE, 1);
  }

  /** Returns whether the source's values are written unchanged and in the same order. */
  boolean isPlain(boolean staged) {
    return !staged
        && terms() == 1
        && move.source().dtype() == move.target().dtype()
        && wire(staged) == dtype()
        && move.axes().keepOrder();
  }

  /**
   * Returns the number of bytes of memory that an element needs before it is copied to the target's
   * memory.
   */
  long elementBytes() {
    return (terms() > 1 ? terms() + 1L : 1) * dtype().bytes() + wireBytes();
  }

  /**
   * Reads a box of the stored tensor.
   *
   * @param start the first index in each dimension
   * @param shape the extents of the box
   * @param into receives the box once for each term, one after another
   */
  void read(long[] start, long[] shape, ByteBuffer into, ByteBuffer scratch, Team team) {
    long[] block = leading(terms(), shape);
    for (int term = 0; term < terms(); term++) {
      for (Part part : terms.get(term)) {
        for (Runs.Box box : part.runs().within(start, shape)) {
          long[] place = box.global();
          Arrays.setAll(place, d -> place[d] - start[d]);
          new FileBox(
                  dtype().bytes(),
                  leading(1, part.runs().shape()),
                  leading(0, box.local()),
                  leading(1, box.shape()),
                  block,
                  leading(term, place))
              .read(part.file(), move.source().stored(), into, scratch, team);
        }
      }
    }
  }

  static long[] leading(long first, long[] rest) {
    long[] all = new long[rest.length + 1];
    all[0] = first;
    System.arraycopy(rest, 0, all, 1, rest.length);
    return all;
  }
}
