// SPDX-License-Identifier: Apache-2.0
package org.windlass.plan;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.Comparator;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import org.jspecify.annotations.Nullable;
import org.windlass.DType;

/**
 * Finds the cells of the source layout, and their overlaps with cells of the target layout. {@link
 * Grid} defines cells and members. The object caches the results. Used by {@link RouteFinder}.
 */
final class Pieces {
  /**
   * A cell of one tensor dimension.
   *
   * @param cell the number of the cell
   * @param bounds its global half-open intervals in local order: start, end, start, end, ...
   * @param length the sum of the intervals' lengths
   */
  record Slab(int cell, long[] bounds, long length) {}

  /**
   * A region of the source, and how the members that hold it share the sending.
   *
   * @param cells the source cell of each dimension, which together are the region
   * @param slabs the same cells with their intervals
   * @param size number of elements of the region
   * @param senders the members that send
   * @param nearby what members send to ranks of their own hosts
   * @param axis what members send to all other ranks
   * @param shares how members divide {@code axis}
   */
  record Piece(
      int[] cells,
      Slab[] slabs,
      long size,
      Senders senders,
      Nearby nearby,
      Axis axis,
      Shares shares) {}

  /** Size of a tensor in bytes from which on regions may be cut, so that members share evenly. */
  private static final long LEAST_EVEN = 1L << 20;

  private final Grid source;
  private final Grid target;
  private final boolean meshesOverlap;
  private final HostGroups groups;
  private final boolean hostsOverlap;
  private final boolean gathers;
  private final Senders all;
  private final Hosts hosts;
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
    this.hosts = options.hosts();
    boolean areDivided = !gathers && hosts.divide(source.mesh, target.mesh);
    this.groups = areDivided ? HostGroups.of(target, hosts) : HostGroups.single(target);
    this.hostsOverlap = areDivided && hosts.mayShare(source.mesh, target.mesh);
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

  /** Returns, for each dimension d, the overlap of a piece and target cell {@code cells[d]}. */
  Overlap[] overlaps(Piece piece, int[] cells) {
    Overlap[] found = new Overlap[cells.length];
    for (int d = 0; d < cells.length; d++) {
      found[d] = overlap(d, piece.slabs[d], cells[d]);
    }
    return found;
  }

  Overlap overlap(int dim, Slab slab, int targetCell) {
    long key = (long) slab.cell << 32 | targetCell;
    return overlaps
        .get(dim)
        .computeIfAbsent(key, k -> Overlap.of(slab.bounds, targetSlab(dim, targetCell).bounds));
  }

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

  /** Creates the piece of the source cell that has these slabs, one for each dimension. */
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
    if (size == 0 || !meshesOverlap && !hostsOverlap && !groups.areUneven()) {
      return bare;
    }
    List<Axis.Hole> holes = new ArrayList<>();
    Nearby nearby = Nearby.NONE;
    if (hostsOverlap) {
      nearby = nearby(bare, holes);
    } else if (meshesOverlap) {
      addOwnNeeds(bare, holes);
    }
    if (groups.areUneven()) {
      addLacking(bare, 0, 0, 1, new int[cells.length], holes);
    }
    return piece(cells, slabs, size, nearby, holes);
  }

  private Piece piece(
      int[] cells, Slab[] slabs, long size, Nearby nearby, List<Axis.Hole> holes) {
    Axis axis = new Axis(size, groups.most(), holes);
    Shares shares = Shares.of(source.members, axis.length(), size, cutsSmall, wire);
    return new Piece(cells, slabs, size, all, nearby, axis, shares);
  }

  /**
   * Returns the member from which the root of {@link TransferMode#GATHER_BROADCAST} reads source
   * cells. It is the root itself if it holds them, otherwise a member on its host. If there is
   * none, the plan's turn selects the member.
   */
  private int gatheredFrom(int[] cells) {
    int root = source.mesh.rankAtPlace(0);
    if (Arrays.equals(source.cellsOf(0), cells)) {
      return source.memberOf(0);
    }
    for (int i = 0; i < source.members; i++) {
      int member = (i + turn % source.members) % source.members;
      if (hosts.areTogether(source.rank(cells, member), root)) {
        return member;
      }
    }
    return turn % source.members;
  }

  boolean meshesOverlap() {
    return meshesOverlap;
  }

  HostGroups groups() {
    return groups;
  }

  /** Adds to {@code holes} the copies that the piece's members make locally for themselves. */
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
    return new Axis.Hole(need.before(), need.size(), groups.of(need.cells(), member));
  }

  /**
   * Makes all target cells have the same number of groups: adds a hole for each group that a cell
   * lacks. Visits the target cells whose first {@code d} dimensions are {@code cells[0]} to {@code
   * cells[d - 1]}.
   *
   * @param before elements of the piece in target cells before the first of these
   * @param width product of the overlaps in dimensions before {@code d}
   */
  private void addLacking(
      Piece piece, int d, long before, long width, int[] cells, List<Axis.Hole> holes) {
    if (d == cells.length) {
      for (int group = groups.of(cells).count(); group < groups.most(); group++) {
        holes.add(new Axis.Hole(before, width, group));
      }
      return;
    }
    Slab slab = piece.slabs[d];
    long unit = width;
    for (int i = d + 1; i < cells.length; i++) {
      unit *= piece.slabs[i].length;
    }
    int cell = 0;
    long passed = 0;
    while (passed < slab.length) {
      cell = target.cuts[d].cellAt(slab.bounds, passed, cell);
      cells[d] = cell;
      long length = target.cuts[d].countIn(slab.bounds, cell);
      addLacking(piece, d + 1, before + unit * passed, width * length, cells, holes);
      passed += length;
    }
  }

  /** Plans what members send to ranks of their own hosts. Adds these copies to {@code holes}. */
  private Nearby nearby(Piece piece, List<Axis.Hole> holes) {
    Map<Integer, List<Integer>> membersOfHosts = new TreeMap<>();
    for (int member = 0; member < source.members; member++) {
      int host = hosts.of(source.rank(piece.cells, member));
      membersOfHosts.computeIfAbsent(host, h -> new ArrayList<>()).add(member);
    }
    Nearby nearby = new Nearby();
    membersOfHosts.forEach(
        (host, members) -> {
          Map<Long, List<Nearby.Need>> needs = new TreeMap<>();
          Map<Long, Axis.Hole> served = new TreeMap<>();
          hosts.forEachRankOf(
              host,
              rank -> {
                Nearby.Need need = need(piece, rank);
                if (need == null) {
                  return;
                }
                served.computeIfAbsent(need.before(), before -> hole(need));
                if (!isSender(piece, rank)) {
                  needs.computeIfAbsent(need.before(), before -> new ArrayList<>()).add(need);
                }
              });
          holes.addAll(served.values());
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

  boolean isSender(Piece piece, int rank) {
    int place = source.mesh.placeOf(rank);
    return place >= 0
        && Arrays.equals(source.cellsOf(place), piece.cells)
        && piece.senders.share(source.memberOf(place)) >= 0;
  }

  private Nearby.@Nullable Need need(Piece piece, int rank) {
    int place = target.mesh.placeOf(rank);
    if (place < 0) {
      return null;
    }
    int[] cells = target.cellsOf(place);
    long size = common(piece, cells);
    return size == 0
        ? null
        : new Nearby.Need(rank, cells, elementsBefore(piece, cells), size);
  }

  /** Returns how many elements a piece has in common with target cell {@code cells}. */
  long common(Piece piece, int[] cells) {
    long size = 1;
    for (int d = 0; d < cells.length && size > 0; d++) {
      size *= target.cuts[d].countIn(piece.slabs[d].bounds, cells[d]);
    }
    return size;
  }

  /** Returns the number of elements of a piece in target cells before {@code cells}. */
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
