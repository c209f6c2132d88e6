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
 * at the cells that it holds; see {@link Grid}. It then visits the overlapping cells of the other
 * layout in order, and finds each by a binary search. So the cost depends on the number of routes
 * and not on the size of the mesh, except for these visits:
 *
 * <ul>
 *   <li>If the meshes overlap, each member of a source cell is visited once for that cell.
 *   <li>If the meshes share hosts, all ranks on the hosts of a source cell are visited too.
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

  /** The last list of consecutive members. Routes with the same targets share this list. */
  private @Nullable Members last;

  /**
   * A source cell of one dimension that overlaps a certain target cell.
   *
   * @param slab the source cell
   * @param overlap the overlap of both cells
   * @param before number of elements of the source cell in earlier target cells
   * @param kind a number; overlaps that are whole source cells of the same length have the same
   *     number
   */
  private record SlabOverlap(Grid.Slab slab, Overlap overlap, long before, int kind) {}

  /**
   * The part of a region that one member of a piece sends to a target rank.
   *
   * @param offset distance between the piece's base and the member
   * @param targets the ranks that receive it
   * @param demand the demand for a region of these extents
   * @param from first row
   * @param to end of the rows, excluded
   */
  private record Part(int offset, List<Integer> targets, Demand demand, long from, long to) {}

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
    Arrivals arrivals = new Arrivals(targetPlace, place);
    arrivals.visit(0, 0, 0);
    List<Route> routes = arrivals.routes;
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
      routes.add(route(place, List.of(), nothing));
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
   * host, then to all others. Each of these three groups is in the order of target cells.
   */
  private void addOwned(Pieces.Piece piece, int place, List<Route> routes) {
    int member = source.memberOf(place);
    int share = pieces.share(piece, member);
    if (piece.size() == 0 || share < 0) {
      return;
    }
    int rank = source.mesh.rankAtPlace(place);
    Nearby.Need own = pieces.need(piece, rank);
    if (own != null) {
      routes.add(route(place, List.of(rank), own.region()));
    }
    for (Nearby.Service service : piece.nearby().services()) {
      if (service.member() == member) {
        routes.add(route(place, service.targets(), service.region()));
      }
    }
    Shares shares = piece.shares();
    if (piece.axis().length() > 0) {
      pieces.walk(
          piece,
          piece.axis().element(shares.start(share)),
          shares.start(share + 1),
          (base, before, size, region) -> {
            Demand demand = demand(piece, before, size, region);
            shares.of(
                share,
                demand,
                (sender, low, high, from, to) -> {
                  List<Integer> targets = targets(piece, before, base, low, high);
                  routes.add(route(place, targets, demand.part(region, from, to)));
                });
          });
    }
  }

  private static Demand demand(Pieces.Piece piece, long before, long size, Overlap[] region) {
    return new Demand(piece.axis().place(before), size, piece.axis().copies(before), region);
  }

  private Route route(int place, List<Integer> targets, Overlap[] region) {
    return new Route(source.mesh.rankAtPlace(place), terms(place), targets, region, values);
  }

  /** The search for the routes to one target rank from other ranks. */
  private final class Arrivals {
    final int rank;

    /** The base of the rank's target cells, and its member number there. */
    final int base;

    final int member;

    /** The rank's position in the source mesh; -1 if it is not in that mesh. */
    final int ownPlace;

    final SlabOverlap[][] overlaps;

    /** For each dimension, the number of different kinds of overlaps. */
    final int[] kinds;

    /** For each dimension, the element of {@link #overlaps} that is being visited. */
    final SlabOverlap[] found;

    /** Cache of the parts of a region that ranks send, by the kinds of the region's overlaps. */
    final Map<Integer, List<Part>> partsByKind = new HashMap<>();

    final List<Route> routes = new ArrayList<>();

    Arrivals(int place, int ownPlace) {
      this.rank = target.mesh.rankAtPlace(place);
      this.base = target.base(place);
      this.member = target.memberOf(place);
      this.ownPlace = ownPlace;
      this.overlaps = new SlabOverlap[source.cuts.length][];
      this.kinds = new int[source.cuts.length];
      this.found = new SlabOverlap[source.cuts.length];
      for (int d = 0; d < overlaps.length; d++) {
        overlaps[d] = overlaps(d, target.cell(d, place));
        for (SlabOverlap each : overlaps[d]) {
          kinds[d] = Math.max(kinds[d], each.kind + 1);
        }
      }
    }

    /**
     * Adds the routes of the source cells whose cells in the first {@code d} dimensions have been
     * chosen.
     *
     * @param pieceBase the part of the piece's base from these dimensions
     * @param kind combines the kinds of the overlaps in these dimensions
     */
    void visit(int d, int pieceBase, int kind) {
      if (d == found.length) {
        add(pieceBase, kind);
        return;
      }
      for (SlabOverlap each : overlaps[d]) {
        found[d] = each;
        visit(d + 1, pieceBase + each.slab.base(), kind * kinds[d] + each.kind);
      }
    }

    private void add(int pieceBase, int kind) {
      Overlap[] region = new Overlap[found.length];
      for (int d = 0; d < region.length; d++) {
        region[d] = found[d].overlap;
      }
      List<Part> parts = partsByKind.get(kind);
      if (parts == null) {
        parts = parts(region);
        if (pieces.areAlike()) {
          partsByKind.put(kind, parts);
        }
      }
      for (Part part : parts) {
        Overlap[] sent = part.demand.part(region, part.from, part.to);
        routes.add(route(pieceBase + part.offset, part.targets, sent));
      }
    }

    /**
     * Returns the parts of a region that ranks of other hosts send. Adds the routes from this host.
     */
    private List<Part> parts(Overlap[] region) {
      Grid.Slab[] slabs = new Grid.Slab[found.length];
      for (int d = 0; d < slabs.length; d++) {
        slabs[d] = found[d].slab;
      }
      Pieces.Piece piece = pieces.of(slabs);
      List<Nearby.Service> services = piece.nearby().of(rank);
      for (Nearby.Service service : services) {
        int sender = piece.base() + source.offset(service.member());
        routes.add(route(sender, service.targets(), service.region()));
      }
      boolean isOwn =
          ownPlace >= 0
              && source.base(ownPlace) == piece.base()
              && pieces.share(piece, source.memberOf(ownPlace)) >= 0;
      List<Part> parts = new ArrayList<>();
      if (services.isEmpty() && !isOwn) {
        long before = 0;
        long common = 1;
        long rest = piece.size();
        for (SlabOverlap each : found) {
          rest /= each.slab.length();
          before += common * each.before * rest;
          common *= each.overlap.extent;
        }
        addParts(piece, before, demand(piece, before, common, region), parts);
      }
      return parts;
    }

    private void addParts(Pieces.Piece piece, long before, Demand demand, List<Part> parts) {
      piece
          .shares()
          .into(
              demand,
              piece.axis().copy(before, pieces.groups().of(base, member)),
              (share, low, high, from, to) -> {
                boolean isForAll = high - low == demand.copies && !parts.isEmpty();
                parts.add(
                    new Part(
                        source.offset(pieces.member(piece, share)),
                        isForAll
                            ? parts.get(0).targets
                            : targets(piece, before, base, low, high),
                        demand,
                        from,
                        to));
              });
    }
  }

  /** Returns the source cells of dimension {@code dim} that overlap a target cell, ascending. */
  private SlabOverlap[] overlaps(int dim, int targetCell) {
    Cut cut = source.cuts[dim];
    Grid.Slab own = target.slab(dim, targetCell);
    List<SlabOverlap> overlaps = new ArrayList<>();
    Map<Long, Integer> kindsOfWhole = new HashMap<>(); // by length
    int kinds = 0;
    int cell = 0;
    long passed = 0;
    while (passed < own.length()) {
      cell = cut.cellAt(own.bounds(), passed, cell);
      Grid.Slab slab = source.slab(dim, cell);
      Overlap overlap = pieces.overlap(dim, slab, targetCell);
      long before = target.cuts[dim].countInBelow(slab.bounds(), targetCell);
      boolean isWhole = overlap.extent == slab.length();
      Integer same = isWhole ? kindsOfWhole.putIfAbsent(slab.length(), kinds) : null;
      overlaps.add(new SlabOverlap(slab, overlap, before, same == null ? kinds++ : same));
      passed += overlap.extent;
    }
    return overlaps.toArray(new SlabOverlap[0]);
  }

  /**
   * Returns the ranks that get copies {@code low} to {@code high}, excluded, of a target cell's
   * data.
   *
   * @param before number of elements of the source region in earlier target cells
   * @param base the base of the target cell
   */
  private List<Integer> targets(Pieces.Piece piece, long before, int base, int low, int high) {
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
   * Returns the ranks whose terms a route from position {@code place} reduces. Empty without {@code
   * Partial}. Routes with the same ranks share one list.
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

  /** The ranks of some members of a target cell. The members are listed or consecutive. */
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
