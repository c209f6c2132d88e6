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
 * Lists the source and target files of the moves that fill one target. Indices are those of {@link
 * ByteIndices}. Thread-safe.
 */
final class TargetFiles {
  /** Number of bytes of a source file that take as long to read as one system call. */
  private static final long ROW_BYTES = 4 << 10;

  /**
   * Describes a share of the target that one or several ranks hold.
   *
   * @param runs the indices of the share
   * @param places where each rank's copy of the share is written
   * @param own for each source, the indices that the ranks hold in their own files
   */
  record Part(Runs runs, DType dtype, List<Output.Place> places, List<List<Runs>> own) {}

  private final Checkpoint in;
  private final Map<Integer, Output.Place> places;
  private final List<TensorMove> moves;
  private final TargetTensor target;
  private final ByteIndices indices;
  private @Nullable List<SourceFiles> sources;
  private @Nullable List<Part> parts;

  TargetFiles(Checkpoint in, Map<Integer, Output.Place> places, List<TensorMove> moves) {
    this.in = in;
    this.places = places;
    this.moves = moves;
    this.target = moves.get(0).target();
    this.indices = new ByteIndices(target.dtype());
  }

  TargetTensor target() {
    return target;
  }

  /** Cuts the target into tiles of at most {@code bytes} bytes of memory. */
  Grid grid(long bytes) {
    List<List<Integer>> orders = new ArrayList<>();
    long least = 1;
    for (TensorMove move : moves) {
      orders.add(move.axes().order());
      least = Math.max(least, ROW_BYTES * Byte.SIZE / move.source().dtype().bits());
    }
    orders.add(Grid.rowMajor(target.shape().length));
    return Grid.of(
        indices.shape(target.shape()), orders, least, bytes / indices.memory().bytes());
  }

  synchronized List<SourceFiles> sources() {
    if (sources == null) {
      sources = moves.stream().map(move -> new SourceFiles(in, move)).toList();
    }
    return sources;
  }

  /** Returns the different shares of the target. Ranks with the same share have one entry. */
  synchronized List<Part> parts() {
    if (parts == null) {
      Map<List<List<Runs.Run>>, Part> byRuns = new LinkedHashMap<>();
      for (int rank : places.keySet()) {
        Runs runs = indices.runs(target.held(rank));
        Part part = byRuns.computeIfAbsent(runs.dims(), key -> part(runs));
        part.places().add(places.get(rank));
        for (int i = 0; i < moves.size(); i++) {
          TensorMove move = moves.get(i);
          if (move.source().from().mesh().contains(rank + target.firstRank())) {
            part.own().get(i).add(indices.runs(move.source().held(rank + target.firstRank())));
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
