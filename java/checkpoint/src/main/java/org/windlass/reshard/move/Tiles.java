// SPDX-License-Identifier: Apache-2.0
package org.windlass.reshard.move;

import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.function.Function;
import org.jspecify.annotations.Nullable;
import org.windlass.checkpoint.Checkpoint;
import org.windlass.reshard.output.Output;
import org.windlass.reshard.tensor.TargetTensor;
import org.windlass.reshard.tensor.TensorMove;

/**
 * Assigns the tiles of all targets to the threads of all processes. Every process numbers the tiles
 * in the same way. Thread-safe.
 */
final class Tiles {
  /**
   * Represents a box of a target that one thread moves. {@code start} has its first indices, {@code
   * shape} its extents.
   */
  record Tile(TargetFiles files, long[] start, long[] shape) {}

  private final Checkpoint in;
  private final Function<TargetTensor, Map<Integer, Output.Place>> places;
  private final List<TensorMove> moves;
  private final Team team;
  private final long bytes;
  private @Nullable TargetFiles files;
  private @Nullable Grid grid;
  private int nextMove;
  /** Number of tiles in all targets up to the current one, inclusive. */
  private long end;

  /**
   * Creates the tiles of a run.
   *
   * @param bytes the size limit of a tile in memory
   */
  Tiles(Checkpoint in, Output output, List<TensorMove> moves, Team team, long bytes) {
    this.in = in;
    this.places = output.places();
    this.moves = moves;
    this.team = team;
    this.bytes = bytes;
  }

  /** Returns a tile that no other thread of any process gets. Null if no tile is left. */
  synchronized @Nullable Tile next() {
    long number = team.add(Team.TILES, 1);
    while (number >= end) {
      if (nextMove == moves.size()) {
        return null;
      }
      int first = nextMove;
      while (nextMove < moves.size() && moves.get(nextMove).target() == moves.get(first).target()) {
        nextMove++;
      }
      files =
          new TargetFiles(
              in, places.apply(moves.get(first).target()), moves.subList(first, nextMove));
      grid = files.grid(bytes);
      end += grid.count();
    }
    Grid last = Objects.requireNonNull(grid);
    long[] start = last.start(number - end + last.count());
    return new Tile(Objects.requireNonNull(files), start, last.shape(start));
  }
}
