// SPDX-License-Identifier: Apache-2.0
package org.windlass.plan;

import java.util.AbstractList;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Comparator;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.function.Supplier;
import org.windlass.internal.Cut;

/**
 * Finds routes by interval arithmetic, one tensor dimension at a time. The search for a rank starts
 * at its own cells, see {@link Grid}. It visits the overlapping cells of the other layout in order,
 * each by a binary search. The cost therefore depends on the number of routes and not on the size
 * of the mesh, except for these visits:
 *
 * <ul>
 *   <li>If the meshes overlap, each member of a source cell is visited once for that cell.
 *   <li>If the meshes share hosts, each rank of those members' hosts is visited once for that cell.
 *   <li>If there are several hosts, the host of each target rank is visited once.
 * </ul>
 *
 * <p>An instance remembers the cells, overlaps and groups that it found. Only one thread may use
 * it.
 */
final class RouteFinder {
  private final Grid source;
  private final Grid target;
  private final Pieces pieces;
  private final Route.Terms terms;

  /** Cache of the ranks that hold the terms of a value, by source cells and lowest member. */
  private final Map<Long, List<Integer>> groups = new HashMap<>();

  /**
   * A source cell of one dimension that overlaps a certain target cell.
   *
   * @param slab the source cell
   * @param overlap the overlap of both cells
   * @param before number of elements of the source cell in target cells before that one
   */
  private record SlabOverlap(Pieces.Slab slab, Overlap overlap, long before) {}

  RouteFinder(Grid source, Grid target, long numel, PlanOptions options, Route.Terms terms) {
    this.source = source;
    this.target = target;
    this.pieces = new Pieces(source, target, numel, options, terms);
    this.terms = terms;
  }

  /** Returns the routes from the rank at row-major index {@code place} of the source mesh. */
  List<Route> from(int place) {
    Pieces.Piece piece = pieces.of(source.cellsOf(place));
    int member = source.memberOf(place);
    List<Route> routes = new ArrayList<>();
    addOwned(piece, member, routes);
    if (source.groupSize > 1) {
      addReduceOnly(piece, member, routes);
    }
    return routes;
  }

  /** Returns the routes in which {@code rank} takes part, in the order of {@link Plan#routes}. */
  List<Route> touching(int rank) {
    int place = source.mesh.placeOf(rank);
    List<Route> own = place < 0 ? List.of() : from(place);
    int targetPlace = target.mesh.placeOf(rank);
    if (targetPlace < 0) {
      return own;
    }
    List<Route> routes = into(targetPlace, place);
    routes.sort(Comparator.comparingInt(route -> source.mesh.placeOf(route.source())));
    int at = 0;
    while (at < routes.size() && source.mesh.placeOf(routes.get(at).source()) < place) {
      at++;
    }
    routes.addAll(at, own);
    return routes;
  }

  private void addReduceOnly(Pieces.Piece piece, int member, List<Route> routes) {
    int rank = source.rank(piece.cells(), member);
    if (piece.size() == 0) {
      Overlap[] nothing = new Overlap[piece.cells().length];
      Arrays.fill(nothing, Overlap.none());
      routes.add(
          new Route(rank, Transport.NONE, sources(piece, member), List.of(), nothing, terms));
      return;
    }
    List<Route> others = new ArrayList<>();
    for (int other : source.group(member)) {
      if (other != member) {
        addOwned(piece, other, others);
      }
    }
    for (Route route : others) {
      routes.add(route.reduceOnly(rank));
    }
  }

  /**
   * Adds the routes that {@code member} sends: first to itself, then to ranks on its host, then to
   * all others. Each of the three is in the order of target cells.
   */
  private void addOwned(Pieces.Piece piece, int member, List<Route> routes) {
    int share = piece.senders().share(member);
    if (piece.size() == 0 || share < 0) {
      return;
    }
    List<Integer> sources = sources(piece, member);
    int rank = source.rank(piece.cells(), member);
    int targetPlace = pieces.meshesOverlap() ? target.mesh.placeOf(rank) : -1;
    if (targetPlace >= 0) {
      int[] cells = target.cellsOf(targetPlace);
      if (pieces.common(piece, cells) > 0) {
        Overlap[] region = pieces.overlaps(piece, cells);
        routes.add(new Route(rank, Transport.LOCAL, sources, List.of(rank), region, terms));
      }
    }
    for (Nearby.Service service : piece.nearby().services()) {
      if (service.member() == member) {
        addSending(rank, sources, service.targets(), service.region(), routes);
      }
    }
    if (piece.axis().length() > 0) {
      new Stretch(piece, share).collect(0, 0, 1, new int[piece.cells().length], routes);
    }
  }

  private void addSending(
      int rank,
      List<Integer> sources,
      List<Integer> targets,
      Overlap[] region,
      List<Route> routes) {
    if (!targets.isEmpty()) {
      Transport transport = targets.size() > 1 ? Transport.BROADCAST : Transport.P2P;
      routes.add(new Route(rank, transport, sources, targets, region, terms));
    }
  }

  /**
   * Returns the routes to a target rank from other ranks.
   *
   * @param place index of the target rank in the target mesh, in row-major order
   * @param placeInSource its index in the source mesh; -1 if it is not there
   */
  private List<Route> into(int place, int placeInSource) {
    int ndim = source.cuts.length;
    int[] cells = target.cellsOf(place);
    int rank = target.mesh.rankAtPlace(place);
    int member = target.memberOf(place);
    int[] ownCells = placeInSource < 0 ? null : source.cellsOf(placeInSource);
    int ownMember = placeInSource < 0 ? 0 : source.memberOf(placeInSource);
    SlabOverlap[][] overlaps = new SlabOverlap[ndim][];
    List<Route> routes = new ArrayList<>();
    for (int d = 0; d < ndim; d++) {
      overlaps[d] = overlaps(d, cells[d]);
      if (overlaps[d].length == 0) {
        return routes;
      }
    }
    int[] at = new int[ndim];
    int d;
    do {
      Pieces.Slab[] slabs = new Pieces.Slab[ndim];
      long size = 1;
      long common = 1;
      for (d = 0; d < ndim; d++) {
        slabs[d] = overlaps[d][at[d]].slab();
        size *= slabs[d].length();
      }
      Overlap[] region = new Overlap[ndim];
      long before = 0;
      long rest = size;
      for (d = 0; d < ndim; d++) {
        SlabOverlap found = overlaps[d][at[d]];
        rest /= found.slab().length();
        before += common * found.before() * rest;
        common *= found.overlap().extent;
        region[d] = found.overlap();
      }
      Pieces.Piece piece = pieces.of(slabs, size);
      List<Nearby.Service> services = piece.nearby().of(rank);
      for (Nearby.Service service : services) {
        int sender = source.rank(piece.cells(), service.member());
        List<Integer> sources = sources(piece, service.member());
        addSending(sender, sources, service.targets(), service.region(), routes);
      }
      boolean isOwn =
          Arrays.equals(piece.cells(), ownCells) && piece.senders().share(ownMember) >= 0;
      if (services.isEmpty() && !isOwn) {
        Demand demand = demand(piece, before, common, () -> region);
        addInto(piece, demand, before, cells, member, routes);
      }
      for (d = ndim - 1; d >= 0 && ++at[d] == overlaps[d].length; d--) {
        at[d] = 0;
      }
    } while (d >= 0);
    return routes;
  }

  /** Returns the source cells of dimension {@code dim} that overlap a target cell, ascending. */
  private SlabOverlap[] overlaps(int dim, int targetCell) {
    Cut sourceCut = source.cuts[dim];
    Cut targetCut = target.cuts[dim];
    Pieces.Slab own = pieces.targetSlab(dim, targetCell);
    List<SlabOverlap> overlaps = new ArrayList<>();
    int cell = 0;
    long passed = 0;
    while (passed < own.length()) {
      cell = sourceCut.cellAt(own.bounds(), passed, cell);
      Pieces.Slab slab = pieces.sourceSlab(dim, cell);
      Overlap overlap = pieces.overlap(dim, slab, targetCell);
      long before = targetCut.countInBelow(slab.bounds(), targetCell);
      overlaps.add(new SlabOverlap(slab, overlap, before));
      passed += overlap.extent;
    }
    return overlaps.toArray(new SlabOverlap[0]);
  }

  private void addInto(
      Pieces.Piece piece,
      Demand demand,
      long before,
      int[] cells,
      int targetMember,
      List<Route> routes) {
    List<List<Integer>> last = new ArrayList<>(); // all targets of one set share one list
    piece
        .shares()
        .into(
            demand,
            piece.axis().copy(before, pieces.groups().of(cells, targetMember)),
            (share, low, high, from, to) -> {
              if (last.isEmpty() || high - low != demand.copies) {
                last.clear();
                last.add(targets(piece, before, cells, low, high));
              }
              int sender = piece.senders().member(share);
              addSending(
                  source.rank(piece.cells(), sender),
                  sources(piece, sender),
                  last.get(0),
                  demand.part(from, to),
                  routes);
            });
  }

  private static Demand demand(
      Pieces.Piece piece, long before, long size, Supplier<Overlap[]> region) {
    return new Demand(piece.axis().place(before), size, piece.axis().copies(before), region);
  }

  /** The data that one member sends: an interval of the line of its {@link Axis}. */
  private final class Stretch {
    final Pieces.Piece piece;
    final int share;
    final int rank;
    final List<Integer> sources;

    /** Index of the first element to send, or of an earlier one; see {@link Axis#element}. */
    final long first;

    final double end;

    Stretch(Pieces.Piece piece, int share) {
      this.piece = piece;
      this.share = share;
      int member = piece.senders().member(share);
      this.rank = source.rank(piece.cells(), member);
      this.sources = RouteFinder.this.sources(piece, member);
      this.first = piece.axis().element(piece.shares().start(share));
      this.end = piece.shares().start(share + 1);
    }

    /**
     * Adds the routes to all target cells whose first {@code d} dimensions are {@code cells[0]} to
     * {@code cells[d - 1]}.
     *
     * @param before elements of the source region in target cells before the first of these
     * @param width product of the overlaps in dimensions before {@code d}
     */
    void collect(int d, long before, long width, int[] cells, List<Route> routes) {
      if (d == cells.length) {
        add(before, width, cells.clone(), routes);
        return;
      }
      Cut cut = target.cuts[d];
      Pieces.Slab slab = piece.slabs()[d];
      long unit = width;
      for (int i = d + 1; i < cells.length; i++) {
        unit *= piece.slabs()[i].length();
      }
      long passed = first <= before ? 0 : (first - before) / unit;
      int cell = 0;
      while (passed < slab.length()) {
        cell = cut.cellAt(slab.bounds(), passed, cell);
        passed = cut.countInBelow(slab.bounds(), cell);
        long from = before + unit * passed;
        if (piece.axis().place(from) >= end) {
          return;
        }
        long length = cut.countIn(slab.bounds(), cell);
        cells[d] = cell;
        collect(d + 1, from, width * length, cells, routes);
        passed += length;
      }
    }

    private void add(long before, long size, int[] cells, List<Route> routes) {
      Demand demand = demand(piece, before, size, () -> pieces.overlaps(piece, cells));
      piece
          .shares()
          .of(
              share,
              demand,
              (sender, low, high, from, to) ->
                  addSending(
                      rank,
                      sources,
                      targets(piece, before, cells, low, high),
                      demand.part(from, to),
                      routes));
    }
  }

  /**
   * Returns the ranks that get copies {@code low} to {@code high}, excluded, of a target cell's
   * data.
   *
   * @param before number of elements of the source region in target cells before this one
   * @param cells the number of the target cell in each dimension
   */
  private List<Integer> targets(
      Pieces.Piece piece, long before, int[] cells, int low, int high) {
    if (low >= high) {
      return List.of();
    }
    if (!pieces.groups().areSingle()) {
      return targetsOfGroups(piece, before, cells, low, high);
    }
    int first = piece.axis().group(before, low);
    int last = piece.axis().group(before, high - 1);
    if (!pieces.meshesOverlap()) {
      return first == last
          ? List.of(target.rank(cells, first))
          : new Members(target, cells, first, last + 1);
    }
    List<Integer> targets = new ArrayList<>(high - low);
    for (int member = first; member <= last; member++) {
      int rank = target.rank(cells, member);
      if (!pieces.isSender(piece, rank)) {
        targets.add(rank);
      }
    }
    return List.copyOf(targets);
  }

  private List<Integer> targetsOfGroups(
      Pieces.Piece piece, long before, int[] cells, int low, int high) {
    HostGroups.Cell groups = pieces.groups().of(cells);
    if (high - low == groups.count()) {
      return new Members(target, cells, 0, groups.members().length);
    }
    int first = piece.axis().group(before, low);
    int last = piece.axis().group(before, high - 1);
    int[] starts = groups.starts();
    int[] members = Arrays.copyOfRange(groups.members(), starts[first], starts[last + 1]);
    if (last - first > high - 1 - low) { // there are holes between
      int count = 0;
      for (int copy = low; copy < high; copy++) {
        int group = piece.axis().group(before, copy);
        int length = starts[group + 1] - starts[group];
        System.arraycopy(groups.members(), starts[group], members, count, length);
        count += length;
      }
      members = Arrays.copyOf(members, count);
    }
    Arrays.sort(members);
    return new SomeMembers(target, cells, members);
  }

  /**
   * Returns the ranks whose terms a route from {@code member} reduces; without {@code Partial},
   * only the member's rank. Routes with the same ranks share one list.
   */
  private List<Integer> sources(Pieces.Piece piece, int member) {
    if (source.groupSize == 1) {
      return List.of(source.rank(piece.cells(), member));
    }
    int[] group = source.group(member);
    long key = (long) source.index(piece.cells()) << 32 | group[0];
    return groups.computeIfAbsent(
        key,
        k -> {
          Integer[] ranks = new Integer[group.length];
          for (int i = 0; i < group.length; i++) {
            ranks[i] = source.rank(piece.cells(), group[i]);
          }
          return List.of(ranks);
        });
  }

  private static final class SomeMembers extends AbstractList<Integer> {
    private final Grid grid;
    private final int first;
    private final int[] members;

    SomeMembers(Grid grid, int[] cells, int[] members) {
      this.grid = grid;
      this.first = grid.place(cells, 0);
      this.members = members;
    }

    @Override
    public Integer get(int index) {
      return grid.mesh.rankAtPlace(first + grid.offset(members[index]));
    }

    @Override
    public int size() {
      return members.length;
    }
  }

  private static final class Members extends AbstractList<Integer> {
    private final Grid grid;
    private final int first;
    private final int low;
    private final int high;

    Members(Grid grid, int[] cells, int low, int high) {
      this.grid = grid;
      this.first = grid.place(cells, 0);
      this.low = low;
      this.high = high;
    }

    @Override
    public Integer get(int index) {
      if (index < 0 || index >= high - low) {
        throw new IndexOutOfBoundsException(index);
      }
      return grid.mesh.rankAtPlace(first + grid.offset(low + index));
    }

    @Override
    public int size() {
      return high - low;
    }
  }
}
