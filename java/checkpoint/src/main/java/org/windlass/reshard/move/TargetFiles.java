// SPDX-License-Identifier: Apache-2.0
package org.windlass.reshard.move;

import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import org.jspecify.annotations.Nullable;
import org.windlass.checkpoint.Checkpoint;
import org.windlass.reshard.output.Output;
import org.windlass.reshard.tensor.Axes;
import org.windlass.reshard.tensor.ByteIndices;
import org.windlass.reshard.tensor.Runs;
import org.windlass.reshard.tensor.TargetTensor;
import org.windlass.reshard.tensor.TensorMove;

/** Binds the moves that fill a target to the files at both ends. Thread-safe. */
final class TargetFiles {
  /**
   * Describes a part of the target that one or several ranks hold.
   *
   * @param places where each rank's part is written
   * @param own for each source, what the ranks hold of it themselves
   */
  record Part(Runs runs, List<Output.Place> places, List<List<Runs>> own) {}

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

  ByteIndices indices() {
    return indices;
  }

  /**
   * Cuts the target into tiles.
   *
   * @param bytes the size limit of a tile in memory, as read, moved and written
   * @param staged whether a tile also passes through memory in the wire dtype
   */
  Grid grid(long bytes, boolean staged) {
    long most = 1;
    List<List<Integer>> orders = new ArrayList<>();
    for (TensorMove move : moves) {
      int terms = move.source().terms();
      long bits = (terms > 1 ? terms + 1L : 1) * move.source().dtype().bits();
      bits += staged || move.wire().isPresent() ? move.effectiveWire().bits() : 0;
      most = Math.max(most, bits);
      List<Integer> order = order(move.axes());
      if (!orders.contains(order)) {
        orders.add(order);
      }
    }
    List<Integer> written = new ArrayList<>();
    for (int d = target.shape().length - 1; d >= 0; d--) {
      written.add(d);
    }
    if (!orders.contains(written)) {
      orders.add(written);
    }
    // An index of a tensor of less than a byte counts bytes, and this only makes tiles smaller.
    long bits = Math.max(most + target.dtype().bits(), 2 * Byte.SIZE);
    return Grid.of(
        indices.shape(target.shape()), orders, Math.max(bytes * Byte.SIZE / bits, 1));
  }

  /** Returns the written dimensions as they lie in the source's files, innermost first. */
  private static List<Integer> order(Axes axes) {
    List<Integer> order = new ArrayList<>();
    for (int d = axes.stored().size() - 1; d >= 0; d--) {
      order.add(d);
    }
    if (!axes.keepOrder()) {
      order.sort((a, b) -> axes.stored().get(b) - axes.stored().get(a));
    }
    return order;
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
        Part part =
            byRuns.computeIfAbsent(
                runs.dims(),
                key ->
                    new Part(
                        runs,
                        new ArrayList<>(),
                        moves.stream().map(move -> (List<Runs>) new ArrayList<Runs>()).toList()));
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
}
