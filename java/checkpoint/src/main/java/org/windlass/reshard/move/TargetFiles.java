// SPDX-License-Identifier: Apache-2.0
package org.windlass.reshard.move;

import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import org.jspecify.annotations.Nullable;
import org.windlass.DType;
import org.windlass.checkpoint.Checkpoint;
import org.windlass.reshard.output.Output;
import org.windlass.reshard.tensor.ByteIndices;
import org.windlass.reshard.tensor.Runs;
import org.windlass.reshard.tensor.TargetTensor;
import org.windlass.reshard.tensor.TensorMove;

/**
 * Binds the moves that fill a target to the files at both ends. Indices are those of {@link
 * ByteIndices}. Thread-safe.
 */
final class TargetFiles {
  /** Size of a source's rows that costs as much as the call that reads it. */
  private static final long ROW_BYTES = 4 << 10;

  /**
   * Describes a part of the target that one or several ranks hold.
   *
   * @param dtype the dtype of the elements in memory
   * @param places where each rank's part is written
   * @param own for each source, what the ranks hold of it themselves
   */
  record Part(Runs runs, DType dtype, List<Output.Place> places, List<List<Runs>> own) {}

  private final Checkpoint in;
  private final Output output;
  private final Map<Integer, Output.Place> places;
  private final List<TensorMove> moves;
  private final TargetTensor target;
  private final ByteIndices indices;
  private @Nullable List<SourceFiles> sources;
  private @Nullable List<Part> parts;

  TargetFiles(
      Checkpoint in, Output output, Map<Integer, Output.Place> places, List<TensorMove> moves) {
    this.in = in;
    this.output = output;
    this.places = places;
    this.moves = moves;
    this.target = moves.get(0).target();
    this.indices = new ByteIndices(target.dtype());
  }

  TargetTensor target() {
    return target;
  }

  /**
   * Cuts the target into tiles.
   *
   * @param bytes the size limit of a tile in memory
   */
  Grid grid(long bytes) {
    List<List<Integer>> orders = new ArrayList<>();
    long least = 1;
    for (TensorMove move : moves) {
      orders.add(move.axes().order());
      least = Math.max(least, ROW_BYTES * Byte.SIZE / move.source().dtype().bits());
    }
    int ndim = target.shape().length;
    List<Integer> written = new ArrayList<>();
    for (int d = ndim - 1; d >= 0; d--) {
      written.add(d);
    }
    orders.add(written);
    return Grid.of(
        indices.shape(target.shape()), orders, least, bytes / indices.memory().bytes());
  }

  synchronized List<SourceFiles> sources() {
    if (sources == null) {
      sources = moves.stream().map(move -> new SourceFiles(in, move)).toList();
    }
    return sources;
  }

  /** Returns the parts of the target that differ. */
  synchronized List<Part> parts() {
    if (parts == null) {
      Map<List<List<Runs.Run>>, Part> byRuns = new LinkedHashMap<>();
      for (int rank : places.keySet()) {
        Runs runs = indices.runs(output.held(target, rank));
        Part part = byRuns.computeIfAbsent(runs.dims(), key -> part(runs));
        part.places().add(places.get(rank));
        for (int i = 0; i < moves.size(); i++) {
          TensorMove move = moves.get(i);
          if (move.source().from().mesh().contains(rank)) {
            part.own().get(i).add(indices.runs(move.source().held(rank)));
          }
        }
      }
      parts = List.copyOf(byRuns.values());
    }
    return parts;
  }

  private Part part(Runs runs) {
    List<List<Runs>> own = new ArrayList<>();
    moves.forEach(move -> own.add(new ArrayList<>()));
    return new Part(runs, indices.memory(), new ArrayList<>(), own);
  }
}
