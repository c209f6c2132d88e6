// SPDX-License-Identifier: Apache-2.0
package org.windlass;

import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;

/**
 * The source cells that a {@link RouteFinder} meets, and what they have in common with target
 * cells.
 */
final class Pieces {
  /** A cell of one dimension: its global intervals in local order, and the sum of their lengths. */
  record Slab(int cell, long[] bounds, long length) {}

  /** One source cell for each dimension: the region that its members hold. */
  record Piece(int[] cells, Slab[] slabs, long size, Shares shares) {}

  private final Grid source;
  private final Grid target;
  private final boolean meshesOverlap;
  private final Map<Integer, Piece> pieces = new HashMap<>();
  private final List<Map<Integer, Slab>> sourceSlabs = new ArrayList<>();
  private final List<Map<Integer, Slab>> targetSlabs = new ArrayList<>();
  private final List<Map<Long, Overlap>> overlaps = new ArrayList<>();

  Pieces(Grid source, Grid target, boolean meshesOverlap) {
    this.source = source;
    this.target = target;
    this.meshesOverlap = meshesOverlap;
    for (int d = 0; d < source.cuts.length; d++) {
      sourceSlabs.add(new HashMap<>());
      targetSlabs.add(new HashMap<>());
      overlaps.add(new HashMap<>());
    }
  }

  Slab sourceSlab(int dim, int cell) {
    return slab(sourceSlabs, source, dim, cell);
  }

  Slab targetSlab(int dim, int cell) {
    return slab(targetSlabs, target, dim, cell);
  }

  /** For each dimension, what the piece and a target cell have in common. */
  Overlap[] overlaps(Piece piece, int[] cells) {
    Overlap[] found = new Overlap[cells.length];
    for (int d = 0; d < cells.length; d++) {
      Slab ours = piece.slabs[d];
      int dim = d;
      long key = (long) ours.cell << 32 | cells[d];
      found[d] =
          overlaps
              .get(d)
              .computeIfAbsent(
                  key, k -> Overlap.of(ours.bounds, targetSlab(dim, cells[dim]).bounds));
    }
    return found;
  }

  /** The piece of {@code cells}, remembered. */
  Piece of(int[] cells) {
    return pieces.computeIfAbsent(
        source.index(cells),
        index -> {
          Slab[] slabs = new Slab[cells.length];
          long size = 1;
          for (int d = 0; d < cells.length; d++) {
            slabs[d] = sourceSlab(d, cells[d]);
            size *= slabs[d].length;
          }
          return of(slabs, size);
        });
  }

  /** The piece of slabs whose lengths multiply to {@code size}. */
  Piece of(Slab[] slabs, long size) {
    int[] cells = new int[slabs.length];
    for (int d = 0; d < slabs.length; d++) {
      cells[d] = slabs[d].cell;
    }
    Piece bare = new Piece(cells, slabs, size, null);
    long[][] holes = meshesOverlap && size > 0 ? holes(bare) : new long[0][];
    Shares shares = new Shares(size, source.members, target.members, holes);
    return new Piece(cells, slabs, size, shares);
  }

  /**
   * Places and lengths, on the axis of {@link Shares}, of what the piece's members copy to
   * themselves.
   */
  private long[][] holes(Piece piece) {
    int shift = Shares.shift(piece.size, source.members, target.members);
    List<long[]> holes = new ArrayList<>();
    for (int member = 0; member < source.members; member++) {
      int place = target.mesh.placeOf(source.rank(piece.cells, member));
      if (place < 0) {
        continue;
      }
      int[] cells = target.cellsOf(place);
      long size = common(piece, cells);
      if (size > 0) {
        long before = elementsBefore(piece, cells);
        long first = before >> shift;
        long length = (before + size >> shift) - first;
        holes.add(new long[] {first * target.members + length * target.memberOf(place), length});
      }
    }
    return holes.toArray(new long[0][]);
  }

  /** Elements that the piece and the target cells have in common. */
  long common(Piece piece, int[] cells) {
    long size = 1;
    for (int d = 0; d < cells.length && size > 0; d++) {
      size *= target.cuts[d].countIn(piece.slabs[d].bounds, cells[d]);
    }
    return size;
  }

  /** Elements of the piece in row-major lesser target cells. */
  private long elementsBefore(Piece piece, int[] cells) {
    long before = 0;
    long width = 1;
    long rest = piece.size;
    for (int d = 0; d < cells.length; d++) {
      rest /= piece.slabs[d].length;
      before += width * target.cuts[d].countInBelow(piece.slabs[d].bounds, cells[d]) * rest;
      width *= target.cuts[d].countIn(piece.slabs[d].bounds, cells[d]);
    }
    return before;
  }

  private static Slab slab(List<Map<Integer, Slab>> known, Grid grid, int dim, int cell) {
    return known
        .get(dim)
        .computeIfAbsent(
            cell, c -> new Slab(c, grid.cuts[dim].bounds(c), grid.cuts[dim].length(c)));
  }
}
