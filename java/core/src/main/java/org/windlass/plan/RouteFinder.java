// SPDX-License-Identifier: Apache-2.0
package org.windlass.plan;

import java.util.AbstractList;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Comparator;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import org.jspecify.annotations.Nullable;
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
  private final Route.Values values;

  /** Cache of the ranks that hold the terms of a value, by the position of the first term. */
  private final Map<Integer, List<Integer>> terms = new HashMap<>();

  /** The last list of consecutive members. Routes with the same targets share it. */
  private @Nullable Members last;

  /**
   * A source cell of one dimension that overlaps a certain target cell.
   *
   * @param slab the source cell
   * @param overlap the overlap of both cells
   * @param before number of elements of the source cell in target cells before that one
   */
  private record SlabOverlap(Grid.Slab slab, Overlap overlap, long before) {}

  RouteFinder(Grid source, Grid target, long numel, PlanOptions options, Route.Values values) {
    this.source = source;
    this.target = target;
    this.pieces = new Pieces(source, target, numel, options, values);
    this.values = values;
  }

  /** Returns the routes from the rank at row-major index {@code place} of the source mesh. */
  List<Route> from(int place) {
    Pieces.Piece piece = pieces.of(place);
    List<Route> routes = new ArrayList<>();
    addOwned(piece, place, routes);
    if (source.groupSize > 1) {
      addReduceOnly(piece, place, routes);
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

  private void addReduceOnly(Pieces.Piece piece, int place, List<Route> routes) {
    int rank = source.mesh.rankAtPlace(place);
    if (piece.size() == 0) {
      Overlap[] nothing = new Overlap[piece.slabs().length];
      Arrays.fill(nothing, Overlap.of(new long[2], new long[2]));
      routes.add(new Route(rank, terms(place), List.of(), nothing, values));
      return;
    }
    List<Route> others = new ArrayList<>();
    for (int other : source.terms(source.firstTerm(place))) {
      if (other != place) {
        addOwned(piece, other, others);
      }
    }
    for (Route route : others) {
      routes.add(route.reduceOnly(rank));
    }
  }

  /**
   * Adds the routes that the member at {@code place} sends: first to itself, then to ranks on its
   * host, then to all others. Each of the three is in the order of target cells.
   */
  private void addOwned(Pieces.Piece piece, int place, List<Route> routes) {
    int member = source.memberOf(place);
    int share = pieces.share(piece, member);
    if (piece.size() == 0 || share < 0) {
      return;
    }
    Sending sending = new Sending(source.mesh.rankAtPlace(place), terms(place), routes);
    Nearby.Need own = pieces.need(piece, sending.rank);
    if (own != null) {
      sending.add(List.of(sending.rank), own.region());
    }
    for (Nearby.Service service : piece.nearby().services()) {
      if (service.member() == member) {
        sending.add(service.targets(), service.region());
      }
    }
    Axis axis = piece.axis();
    Shares shares = piece.shares();
    if (axis.length() > 0) {
      pieces.walk(
          piece,
          axis.element(shares.start(share)),
          shares.start(share + 1),
          (base, before, size, region) -> {
            Demand demand =
                new Demand(axis.place(before), size, axis.copies(before), region);
            shares.of(
                share,
                demand,
                (sender, low, high, from, to) ->
                    sending.add(targets(piece, before, base, low, high), demand.part(from, to)));
          });
    }
  }

  /** The routes from one rank. */
  private final class Sending {
    final int rank;
    final List<Integer> terms;
    final List<Route> routes;

    Sending(int rank, List<Integer> terms, List<Route> routes) {
      this.rank = rank;
      this.terms = terms;
      this.routes = routes;
    }

    void add(List<Integer> targets, Overlap[] region) {
      if (!targets.isEmpty()) {
        routes.add(new Route(rank, terms, targets, region, values));
      }
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
    int rank = target.mesh.rankAtPlace(place);
    int base = target.base(place);
    int member = target.memberOf(place);
    int ownBase = placeInSource < 0 ? -1 : source.base(placeInSource);
    int ownMember = placeInSource < 0 ? -1 : source.memberOf(placeInSource);
    SlabOverlap[][] overlaps = new SlabOverlap[ndim][];
    List<Route> routes = new ArrayList<>();
    for (int d = 0; d < ndim; d++) {
      overlaps[d] = overlaps(d, target.cell(d, place));
      if (overlaps[d].length == 0) {
        return routes;
      }
    }
    int[] at = new int[ndim];
    int d;
    do {
      Grid.Slab[] slabs = new Grid.Slab[ndim];
      for (d = 0; d < ndim; d++) {
        slabs[d] = overlaps[d][at[d]].slab;
      }
      Pieces.Piece piece = pieces.of(slabs);
      Overlap[] region = new Overlap[ndim];
      long before = 0;
      long common = 1;
      long rest = piece.size();
      for (d = 0; d < ndim; d++) {
        SlabOverlap found = overlaps[d][at[d]];
        rest /= found.slab.length();
        before += common * found.before * rest;
        common *= found.overlap.extent;
        region[d] = found.overlap;
      }
      List<Nearby.Service> services = piece.nearby().of(rank);
      for (Nearby.Service service : services) {
        sending(piece, service.member(), routes).add(service.targets(), service.region());
      }
      boolean isOwn = piece.base() == ownBase && pieces.share(piece, ownMember) >= 0;
      if (services.isEmpty() && !isOwn) {
        addInto(piece, before, common, region, base, member, routes);
      }
      for (d = ndim - 1; d >= 0 && ++at[d] == overlaps[d].length; d--) {
        at[d] = 0;
      }
    } while (d >= 0);
    return routes;
  }

  private Sending sending(Pieces.Piece piece, int member, List<Route> routes) {
    int rank = source.rank(piece.base(), member);
    return new Sending(rank, terms(source.mesh.placeOf(rank)), routes);
  }

  /** Returns the source cells of dimension {@code dim} that overlap a target cell, ascending. */
  private SlabOverlap[] overlaps(int dim, int targetCell) {
    Cut cut = source.cuts[dim];
    Grid.Slab own = target.slab(dim, targetCell);
    List<SlabOverlap> overlaps = new ArrayList<>();
    int cell = 0;
    long passed = 0;
    while (passed < own.length()) {
      cell = cut.cellAt(own.bounds(), passed, cell);
      Grid.Slab slab = source.slab(dim, cell);
      Overlap overlap = pieces.overlap(dim, slab, targetCell);
      long before = target.cuts[dim].countInBelow(slab.bounds(), targetCell);
      overlaps.add(new SlabOverlap(slab, overlap, before));
      passed += overlap.extent;
    }
    return overlaps.toArray(new SlabOverlap[0]);
  }

  private void addInto(
      Pieces.Piece piece,
      long before,
      long size,
      Overlap[] region,
      int base,
      int member,
      List<Route> routes) {
    Axis axis = piece.axis();
    Demand demand = new Demand(axis.place(before), size, axis.copies(before), region);
    int copy = axis.copy(before, pieces.groups().of(base, member));
    List<List<Integer>> all = new ArrayList<>(1); // the targets of parts that go to all of them
    piece
        .shares()
        .into(
            demand,
            copy,
            (share, low, high, from, to) -> {
              if (all.isEmpty() || high - low != demand.copies) {
                all.clear();
                all.add(targets(piece, before, base, low, high));
              }
              sending(piece, pieces.member(piece, share), routes)
                  .add(all.get(0), demand.part(from, to));
            });
  }

  /**
   * Returns the ranks that get copies {@code low} to {@code high}, excluded, of a target cell's
   * data.
   *
   * @param before number of elements of the source region in target cells before this one
   * @param base the base of the target cell
   */
  private List<Integer> targets(Pieces.Piece piece, long before, int base, int low, int high) {
    if (low >= high) {
      return List.of();
    }
    HostGroups groups = pieces.groups();
    boolean isSingle = groups.areSingle();
    if (isSingle && piece.axis().copies(before) == target.members) {
      return members(base, low, high);
    }
    int[] found = piece.axis().groups(before, low, high);
    if (!isSingle && found.length == groups.of(base).count()) {
      return members(base, 0, target.members);
    }
    int[] listed = isSingle ? found : groups.members(base, found);
    return new Members(target, base, 0, listed.length, listed);
  }

  private List<Integer> members(int base, int low, int high) {
    if (high - low == 1) {
      return List.of(target.rank(base, low));
    }
    if (last == null || last.base != base || last.low != low || last.high != high) {
      last = new Members(target, base, low, high, null);
    }
    return last;
  }

  /**
   * Returns the ranks whose terms a route from a position reduces; empty without {@code Partial}.
   * Routes with the same ranks share one list.
   */
  private List<Integer> terms(int place) {
    if (source.groupSize == 1) {
      return List.of();
    }
    return terms.computeIfAbsent(
        source.firstTerm(place),
        first ->
            Arrays.stream(source.terms(first)).map(source.mesh::rankAtPlace).boxed().toList());
  }

  /** The ranks of some members of a target cell: those in a list, or consecutive ones. */
  private static final class Members extends AbstractList<Integer> {
    private final Grid grid;
    private final int base;
    private final int low;
    private final int high;
    private final int @Nullable [] listed;

    Members(Grid grid, int base, int low, int high, int @Nullable [] listed) {
      this.grid = grid;
      this.base = base;
      this.low = low;
      this.high = high;
      this.listed = listed;
    }

    @Override
    public Integer get(int index) {
      int member = low + Objects.checkIndex(index, size());
      return grid.rank(base, listed == null ? member : listed[member]);
    }

    @Override
    public int size() {
      return high - low;
    }
  }
}
