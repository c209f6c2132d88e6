// SPDX-License-Identifier: Apache-2.0
package org.windlass.plan;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.Comparator;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import org.windlass.DType;

/**
 * The source cells that a {@link RouteFinder} meets, and what they have in common with target
 * cells.
 */
final class Pieces {
  /** A cell of one dimension: its global intervals in local order, and the sum of their lengths. */
  record Slab(int cell, long[] bounds, long length) {}

  /**
   * One source cell for each dimension: the region that its members hold, and how they share the
   * sending of it.
   */
  record Piece(
      int[] cells,
      Slab[] slabs,
      long size,
      Senders senders,
      Nearby nearby,
      Axis axis,
      Shares shares) {}

  /** Source bytes of a tensor that is shared evenly even where that takes small parts. */
  private static final long LEAST_EVEN = 1L << 20;

  private final Grid source;
  private final Grid target;
  private final boolean meshesOverlap;
  private final boolean hostsOverlap;
  private final boolean gathers;
  private final Senders all;
  private final int ranksPerHost;
  private final int turn;
  private final boolean cutsSmall;
  private final DType wire;
  private final Map<Integer, Piece> pieces = new HashMap<>();
  private final List<Map<Integer, Slab>> sourceSlabs = new ArrayList<>();
  private final List<Map<Integer, Slab>> targetSlabs = new ArrayList<>();
  private final List<Map<Long, Overlap>> overlaps = new ArrayList<>();

  Pieces(Grid source, Grid target, long numel, PlanOptions options, Route.Terms terms) {
    this.source = source;
    this.target = target;
    this.meshesOverlap = source.mesh.overlaps(target.mesh);
    this.gathers = options.mode() == TransferMode.GATHER_BROADCAST;
    this.all = Senders.all(source.members, options.turn());
    this.ranksPerHost = options.ranksPerHost();
    this.hostsOverlap = hostsOverlap();
    this.turn = options.turn();
    this.cutsSmall = terms.dtype().bytesOf(numel) >= LEAST_EVEN;
    this.wire = terms.wire();
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
      found[d] = overlap(d, piece.slabs[d], cells[d]);
    }
    return found;
  }

  /** What a source slab and a target cell of dimension {@code dim} have in common. */
  Overlap overlap(int dim, Slab slab, int targetCell) {
    long key = (long) slab.cell << 32 | targetCell;
    return overlaps
        .get(dim)
        .computeIfAbsent(key, k -> Overlap.of(slab.bounds, targetSlab(dim, targetCell).bounds));
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
    if (gathers) {
      Senders sole = Senders.sole(gatheredFrom(cells), source.members);
      Shares whole = Shares.of(1, (double) size * target.members, size, false, wire);
      Axis axis = new Axis(size, target.members, List.of());
      return new Piece(cells, slabs, size, sole, Nearby.NONE, axis, whole);
    }
    Piece bare = piece(cells, slabs, size, Nearby.NONE, List.of());
    if (size == 0 || !meshesOverlap && !hostsOverlap) {
      return bare;
    }
    List<Axis.Hole> holes = new ArrayList<>();
    if (meshesOverlap) {
      addOwnNeeds(bare, holes);
    }
    Nearby nearby = hostsOverlap ? nearby(bare, holes) : Nearby.NONE;
    return piece(cells, slabs, size, nearby, holes);
  }

  /** A piece that all members share, but for what {@code holes} say. */
  private Piece piece(
      int[] cells, Slab[] slabs, long size, Nearby nearby, List<Axis.Hole> holes) {
    Axis axis = new Axis(size, target.members, holes);
    Shares shares = Shares.of(source.members, axis.length(), size, cutsSmall, wire);
    return new Piece(cells, slabs, size, all, nearby, axis, shares);
  }

  /** The member that the root of a gathering takes a cell from: itself, or one on its host. */
  private int gatheredFrom(int[] cells) {
    int root = source.mesh.rankOf(0);
    if (Arrays.equals(source.cellsOf(0), cells)) {
      return source.memberOf(0);
    }
    for (int i = 0; i < source.members; i++) {
      int member = (i + turn % source.members) % source.members;
      if (source.rank(cells, member) / ranksPerHost == root / ranksPerHost) {
        return member;
      }
    }
    return turn % source.members;
  }

  boolean meshesOverlap() {
    return meshesOverlap;
  }

  /** Whether there are several hosts, and one may hold ranks of both meshes. */
  private boolean hostsOverlap() {
    int sourceLow = source.mesh.lowestRank() / ranksPerHost;
    int sourceHigh = source.mesh.highestRank() / ranksPerHost;
    int targetLow = target.mesh.lowestRank() / ranksPerHost;
    int targetHigh = target.mesh.highestRank() / ranksPerHost;
    return sourceLow <= targetHigh
        && targetLow <= sourceHigh
        && (sourceLow != targetHigh || targetLow != sourceHigh);
  }

  /** Adds what the piece's members copy to themselves. */
  private void addOwnNeeds(Piece piece, List<Axis.Hole> holes) {
    for (int member = 0; member < source.members; member++) {
      Nearby.Need need = need(piece, source.rank(piece.cells, member));
      if (need != null) {
        holes.add(hole(need));
      }
    }
  }

  private Axis.Hole hole(Nearby.Need need) {
    int member = target.memberOf(target.mesh.placeOf(need.rank()));
    return new Axis.Hole(need.before(), need.size(), member);
  }

  /** What is sent within hosts, which it adds to {@code holes}. */
  private Nearby nearby(Piece piece, List<Axis.Hole> holes) {
    Map<Integer, List<Integer>> membersOfHosts = new TreeMap<>();
    for (int member = 0; member < source.members; member++) {
      int host = source.rank(piece.cells, member) / ranksPerHost;
      membersOfHosts.computeIfAbsent(host, h -> new ArrayList<>()).add(member);
    }
    if (membersOfHosts.size() == 1) {
      return Nearby.NONE; // all members are equally near to every rank
    }
    Nearby nearby = new Nearby();
    membersOfHosts.forEach(
        (host, members) -> {
          Map<Long, List<Nearby.Need>> needs = new TreeMap<>();
          for (int rank = host * ranksPerHost; rank < (host + 1) * ranksPerHost; rank++) {
            Nearby.Need need = isSender(piece, rank) ? null : need(piece, rank);
            if (need != null) {
              needs.computeIfAbsent(need.before(), b -> new ArrayList<>()).add(need);
              holes.add(hole(need));
            }
          }
          for (List<Nearby.Need> same : needs.values()) {
            same.sort(Comparator.comparingInt(n -> target.mesh.placeOf(n.rank())));
          }
          nearby.add(
              members,
              List.copyOf(needs.values()),
              cells -> overlaps(piece, cells),
              cutsSmall,
              wire,
              turn);
        });
    return nearby;
  }

  /** Whether {@code rank} sends of the piece, and so copies what it needs of it to itself. */
  private boolean isSender(Piece piece, int rank) {
    int place = source.mesh.placeOf(rank);
    return place >= 0
        && Arrays.equals(source.cellsOf(place), piece.cells)
        && piece.senders.share(source.memberOf(place)) >= 0;
  }

  /** Whether {@code rank}, if it needs the piece, gets it other than by {@link Piece#shares}. */
  boolean isServedNearer(Piece piece, int rank) {
    return isSender(piece, rank) || !piece.nearby.of(rank).isEmpty();
  }

  /** What {@code rank} needs of the piece, or null if that is nothing. */
  private Nearby.Need need(Piece piece, int rank) {
    int place = target.mesh.placeOf(rank);
    int[] cells = place < 0 ? null : target.cellsOf(place);
    long size = place < 0 ? 0 : common(piece, cells);
    if (size == 0) {
      return null;
    }
    return new Nearby.Need(rank, cells, elementsBefore(piece, cells), size);
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
