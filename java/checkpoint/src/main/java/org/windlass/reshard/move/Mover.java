// SPDX-License-Identifier: Apache-2.0
package org.windlass.reshard.move;

import java.util.List;
import java.util.function.LongConsumer;
import org.windlass.Communicator;
import org.windlass.checkpoint.Checkpoint;
import org.windlass.checkpoint.SafetensorsFile;
import org.windlass.plan.TransferMode;
import org.windlass.reshard.output.Output;
import org.windlass.reshard.request.ReshardRequest;
import org.windlass.reshard.tensor.TensorMove;

/**
 * Moves tensors from files to files.
 *
 * <p>It cuts each target into tiles, which are boxes of elements. A few threads take tiles, one
 * after another, until no tile is left. A thread reads the sources of a tile and writes each rank's
 * share of the tile. So the work depends on the bytes, and not on the number of ranks in the
 * layouts.
 *
 * @param progress receives the number of bytes that have moved
 * @param check throws an exception if the run must end
 */
public record Mover(
    Checkpoint in,
    Team team,
    Output output,
    List<TensorMove> moves,
    Overflows overflows,
    ReshardRequest request,
    LongConsumer progress,
    Runnable check) {
  /** Default size of a tile in bytes. A tile stays in the caches until it is written. */
  private static final long TILE_BYTES = 8L << 20;

  private static final long MOST_TILE_BYTES = 512L << 20;

  /**
   * Holds the bytes that target ranks took from files of other ranks, and from their own files.
   * Bytes are counted in the wire dtype.
   */
  public record Moved(long sentBytes, long localBytes) {}

  /**
   * Moves everything. This is a collective operation.
   *
   * @param wrote for each tile that this process has written, receives the number of bytes. Any of
   *     its threads may call it
   */
  public Moved run(LongConsumer wrote) {
    if (!moves.isEmpty()) {
      long tileBytes = Math.min(request.bucketBytes.orElse(TILE_BYTES), MOST_TILE_BYTES);
      Tiles tiles = new Tiles(in, output, moves, team, tileBytes);
      new ProgressWatch(
              request.deadline,
              () -> team.get(Team.MOVED),
              () -> team.get(Team.CALLS),
              output.bytes(),
              progress)
          .run(team, () -> team.group().run(comm -> run(comm, tiles, tileBytes, wrote)));
    }
    return new Moved(team.get(Team.SENT), team.get(Team.LOCAL));
  }

  private void run(Communicator comm, Tiles tiles, long tileBytes, LongConsumer wrote) {
    boolean staged = request.mode == TransferMode.STAGED;
    TileMover mover = new TileMover(team, overflows, tileBytes, staged);
    if (team.works(comm)) {
      long unchecked = 0;
      for (Tiles.Tile tile = tiles.next(); tile != null; tile = tiles.next()) {
        check.run();
        if (unchecked <= 0) {
          in.files().forEach(SafetensorsFile::checkLength);
          unchecked = TILE_BYTES;
        }
        long before = mover.writtenBytes();
        mover.move(tile);
        unchecked -= mover.writtenBytes() - before;
        wrote.accept(mover.writtenBytes() - before);
      }
    }
    // All ranks wait here, and exchange their byte counts and the names of overflowed tensors.
    team.add(Team.SENT, mover.sentBytes());
    team.add(Team.LOCAL, mover.localBytes());
    overflows.share(team, comm);
    comm.withDeadline(Team.NO_LIMIT).barrier();
  }
}
