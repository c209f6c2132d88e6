// SPDX-License-Identifier: Apache-2.0
package org.windlass.plan;

import java.util.ArrayList;
import java.util.Comparator;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import org.jspecify.annotations.Nullable;
import org.windlass.DType;
import org.windlass.internal.Cut;

/**
 * Finds the cells of the source layout, and their overlaps with cells of the target layout. {@link
 * Grid} defines cells and members. The object caches the results. Used by {@link RouteFinder}.
 */
final class Pieces {
  /**
   * A region of the source, and the division of the sending among the members that hold it.
   *
   * @param base the base of the source cells that make up the region
   * @param slabs the source cell of each dimension
   * @param size number of elements of the region
   * @param first the member that sends share 0; the members after it send the next shares
   * @param nearby the data that members send to ranks on their own hosts
   * @param axis the data that members send to all other ranks
   * @param shares how members divide {@code axis}
   */
  record Piece(
      int base,
      Grid.Slab[] slabs,
      long size,
      int first,
      Nearby nearby,
      Axis axis,
      Shares shares) {}

  /** Receives a target cell that overlaps a piece. */
  interface Visitor {
    /**
     * Visits a cell.
     *
     * @param base the base of the target cell
     * @param before number of elements of the piece in earlier target cells
     * @param size number of elements of the overlap
     * @param region the overlap in each dimension
     */
    void visit(int base, long before, long size, Overlap[] region);
  }

  /**
   * Size of a tensor, in bytes, from which on its regions may be cut, so that members send equal
   * amounts.
   */
  private static final long LEAST_EVEN = 1L << 20;

  private final Grid source;
  private final Grid target;
  private final boolean meshesOverlap;
  private final HostGroups groups;
  private final boolean hostsOverlap;
  private final boolean haveHoles;
  private final boolean gathers;
  private final Hosts hosts;
  private final int turn;
  private final boolean cutsSmall;
  private final DType wire;
  private final Map<Integer, Piece> pieces = new HashMap<>();
  private final List<Map<Long, Overlap>> overlaps = new ArrayList<>();

  /**
   * The last piece without holes. All such pieces of the same size have the same axis and shares.
   */
  private @Nullable Piece plain;

  Pieces(Grid source, Grid target, long numel, PlanOptions options, Route.Values values) {
    this.source = source;
    this.target = target;
    this.meshesOverlap = source.mesh.overlaps(target.mesh);
    this.gathers = options.mode() == TransferMode.GATHER_BROADCAST;
    this.hosts = options.hosts();
    boolean areDivided = !gathers && hosts.divide(source.mesh, target.mesh);
    this.groups = areDivided ? HostGroups.of(target, hosts) : HostGroups.single(target);
    this.hostsOverlap = areDivided && hosts.mayShare(source.mesh, target.mesh);
    this.haveHoles = meshesOverlap || hostsOverlap || groups.areUneven();
    this.turn = options.turn();
    this.cutsSmall = values.dtype().bytesOf(numel) >= LEAST_EVEN;
    this.wire = values.wire();
    for (int d = 0; d < source.cuts.length; d++) {
      overlaps.add(new HashMap<>());
    }
  }

  Overlap overlap(int dim, Grid.Slab slab, int targetCell) {
    long key = (long) slab.cell() << 32 | targetCell;
    Overlap known = overlaps.get(dim).get(key);
    if (known == null) {
      known = Overlap.of(slab.bounds(), target.slab(dim, targetCell).bounds());
      overlaps.get(dim).put(key, known);
    }
    return known;
  }

  /** Returns the piece that the rank at position {@code place} of the source mesh holds. */
  Piece of(int place) {
    int base = source.base(place);
    Piece known = pieces.get(base);
    if (known == null) {
      Grid.Slab[] slabs = new Grid.Slab[source.cuts.length];
      for (int d = 0; d < slabs.length; d++) {
        slabs[d] = source.slab(d, source.cell(d, place));
      }
      known = of(slabs);
      pieces.put(base, known);
    }
    return known;
  }

  /** Returns the piece of the source cell with these slabs, one for each dimension. */
  Piece of(Grid.Slab[] slabs) {
    int base = 0;
    long size = 1;
    for (Grid.Slab slab : slabs) {
      base += slab.base();
      size *= slab.length();
    }
    int first = gathers ? gatheredFrom(base) : turn % source.members;
    Piece like = plain;
    if (like == null || like.size != size) {
      like = piece(base, slabs, size, first, Nearby.NONE, List.of());
      plain = like;
    }
    Piece bare = new Piece(base, slabs, size, first, Nearby.NONE, like.axis, like.shares);
    if (size == 0 || !haveHoles) {
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
      addLacking(bare, holes);
    }
    return piece(base, slabs, size, first, nearby, holes);
  }

  private Piece piece(
      int base, Grid.Slab[] slabs, long size, int first, Nearby nearby, List<Axis.Hole> holes) {
    Axis axis = new Axis(size, groups.most(), holes);
    int senders = gathers ? 1 : source.members;
    Shares shares = new Shares(senders, axis.length(), size, cutsSmall, wire);
    return new Piece(base, slabs, size, first, nearby, axis, shares);
  }

  /**
   * Returns the member from which the root of {@link TransferMode#GATHER_BROADCAST} reads source
   * cells. If the root holds the cells, it is the root itself; otherwise it is a member on the
   * root's host. If no member is on that host, the plan's turn selects one.
   */
  private int gatheredFrom(int base) {
    if (base == 0) {
      return 0;
    }
    int root = source.mesh.rankAtPlace(0);
    for (int i = 0; i < source.members; i++) {
      int member = (i + turn % source.members) % source.members;
      if (hosts.areTogether(source.rank(base, member), root)) {
        return member;
      }
    }
    return turn % source.members;
  }

  HostGroups groups() {
    return groups;
  }

  /** Returns true if all pieces of the same size have the same axis, shares and first sender. */
  boolean areAlike() {
    return !haveHoles && !gathers;
  }

  /** Returns the index of the share of a piece that a member sends, or -1 if it sends none. */
  int share(Piece piece, int member) {
    int share = Math.floorMod(member - piece.first, source.members);
    return share < piece.shares.senders ? share : -1;
  }

  /** Returns the member that sends a share of a piece. */
  int member(Piece piece, int share) {
    return (piece.first + share) % source.members;
  }

  /** Adds to {@code holes} the copies that the senders of the piece make for themselves. */
  private void addOwnNeeds(Piece piece, List<Axis.Hole> holes) {
    for (int share = 0; share < piece.shares.senders; share++) {
      Nearby.Need need = need(piece, source.rank(piece.base, member(piece, share)));
      if (need != null) {
        holes.add(hole(need));
      }
    }
  }

  private Axis.Hole hole(Nearby.Need need) {
    int group = groups.of(target.base(need.place()), target.memberOf(need.place()));
    return new Axis.Hole(need.before(), need.size(), group);
  }

  /**
   * Adds a hole for each host group that a target cell lacks, so that all target cells have the
   * same number of groups.
   */
  private void addLacking(Piece piece, List<Axis.Hole> holes) {
    walk(
        piece,
        0,
        Double.POSITIVE_INFINITY,
        (base, before, size, region) -> {
          for (int group = groups.of(base).count(); group < groups.most(); group++) {
            holes.add(new Axis.Hole(before, size, group));
          }
        });
  }

  /**
   * Visits the target cells that overlap a piece, in row-major order.
   *
   * @param first index of the element to begin at, counted in the order of the target cells
   * @param end distance on the piece's axis at which to end
   */
  void walk(Piece piece, long first, double end, Visitor visitor) {
    new Walk(piece, first, end, visitor).visit(0, 0, 0, 1);
  }

  private final class Walk {
    final Piece piece;
    final long first;
    final double end;
    final Visitor visitor;
    final Overlap[] region;

    Walk(Piece piece, long first, double end, Visitor visitor) {
      this.piece = piece;
      this.first = first;
      this.end = end;
      this.visitor = visitor;
      this.region = new Overlap[piece.slabs.length];
    }

    /**
     * Visits the target cells whose cells in the first {@code d} dimensions have been chosen.
     *
     * @param base the part of the base from these dimensions
     * @param before number of elements of the piece in target cells before the first of these cells
     * @param width product of the overlaps in these dimensions
     */
    void visit(int d, int base, long before, long width) {
      if (d == region.length) {
        visitor.visit(base, before, width, region.clone());
        return;
      }
      Cut cut = target.cuts[d];
      Grid.Slab slab = piece.slabs[d];
      long unit = width;
      for (int i = d + 1; i < region.length; i++) {
        unit *= piece.slabs[i].length();
      }
      long passed = first <= before ? 0 : (first - before) / unit;
      int cell = 0;
      if (passed > 0 && passed < slab.length()) {
        cell = cut.cellAt(slab.bounds(), passed, cell);
        passed = cut.countInBelow(slab.bounds(), cell);
      }
      while (passed < slab.length()) {
        cell = cut.cellAt(slab.bounds(), passed, cell);
        long from = before + unit * passed;
        if (piece.axis.place(from) >= end) {
          return;
        }
        region[d] = overlap(d, slab, cell);
        visit(d + 1, base + target.slab(d, cell).base(), from, width * region[d].extent);
        passed += region[d].extent;
      }
    }
  }

  /**
   * Plans the data that members send to ranks on their own hosts. Adds these copies to {@code
   * holes}.
   */
  private Nearby nearby(Piece piece, List<Axis.Hole> holes) {
    Map<Integer, List<Integer>> membersOfHosts = new TreeMap<>();
    for (int member = 0; member < source.members; member++) {
      int host = hosts.of(source.rank(piece.base, member));
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
                int place = source.mesh.placeOf(rank);
                if (place < 0 || source.base(place) != piece.base) {
                  needs.computeIfAbsent(need.before(), before -> new ArrayList<>()).add(need);
                }
              });
          holes.addAll(served.values());
          for (List<Nearby.Need> same : needs.values()) {
            same.sort(Comparator.comparingInt(Nearby.Need::place));
          }
          nearby.add(members, List.copyOf(needs.values()), cutsSmall, wire, turn);
        });
    return nearby;
  }

  /**
   * Returns the part of a piece that a rank needs. Null if the rank is not in the target or needs
   * nothing.
   */
  Nearby.@Nullable Need need(Piece piece, int rank) {
    int place = target.mesh.placeOf(rank);
    if (place < 0) {
      return null;
    }
    Overlap[] region = new Overlap[piece.slabs.length];
    long before = 0;
    long size = 1;
    long rest = piece.size;
    for (int d = 0; d < region.length; d++) {
      Grid.Slab slab = piece.slabs[d];
      int cell = target.cell(d, place);
      long below = target.cuts[d].countInBelow(slab.bounds(), cell);
      if (target.cuts[d].countInBelow(slab.bounds(), cell + 1) == below) {
        return null;
      }
      region[d] = overlap(d, slab, cell);
      rest /= slab.length();
      before += size * below * rest;
      size *= region[d].extent;
    }
    return new Nearby.Need(rank, place, before, size, region);
  }
}
