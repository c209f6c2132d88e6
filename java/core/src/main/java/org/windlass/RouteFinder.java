// SPDX-License-Identifier: Apache-2.0
package org.windlass;

import java.util.AbstractList;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Comparator;
import java.util.HashMap;
import java.util.List;
import java.util.Map;

/**
 * Finds routes by interval arithmetic, one tensor dimension at a time. A rank's routes are found from
 * its own cell outwards: the cells of the other layout that meet it, in order, each by a binary
 * search, so the cost follows the routes and not the mesh. Where the meshes overlap, sharing a source
 * cell also looks once at each of that cell's members.
 *
 * <p>An instance remembers cells and overlaps that it met; it serves one thread.
 */
final class RouteFinder {
  private final Grid source;
  private final Grid target;
  private final boolean meshesOverlap;
  private final int turn;
  private final Route.Terms terms;
  private final Map<Integer, Piece> pieces = new HashMap<>();
  private final List<Map<Integer, long[]>> sourceBounds = new ArrayList<>();
  private final List<Map<Integer, long[]>> targetBounds = new ArrayList<>();
  private final List<Map<Long, Overlap>> overlaps = new ArrayList<>();

  /** A source cell: the region that its members hold. */
  private record Piece(int[] cells, long[][] bounds, long[] lengths, long size, Shares shares) {}

  RouteFinder(Layout from, Layout to, long[] shape, int turn, Route.Terms terms) {
    this.source = new Grid(from, shape);
    this.target = new Grid(to, shape);
    this.meshesOverlap = from.mesh().overlaps(to.mesh());
    this.turn = turn % source.members;
    this.terms = terms;
    for (int d = 0; d < shape.length; d++) {
      sourceBounds.add(new HashMap<>());
      targetBounds.add(new HashMap<>());
      overlaps.add(new HashMap<>());
    }
  }

  /** The routes whose source is the rank at {@code place} of the source mesh. */
  List<Route> from(int place) {
    Piece piece = piece(source.cellsOf(place));
    int member = source.memberOf(place);
    List<Route> routes = new ArrayList<>();
    addOwned(piece, member, routes);
    if (source.groupSize > 1) {
      addReduceOnly(piece, member, routes);
    }
    return routes;
  }

  /** The routes that touch {@code rank}, in the order of {@link #from} over all places. */
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

  private void addReduceOnly(Piece piece, int member, List<Route> routes) {
    int rank = source.rank(piece.cells, member);
    if (piece.size == 0) {
      Overlap[] nothing = new Overlap[piece.cells.length];
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

  /** Adds what {@code member} copies to itself, then what it sends, in the order of target cells. */
  private void addOwned(Piece piece, int member, List<Route> routes) {
    if (piece.size == 0) {
      return;
    }
    List<Integer> sources = sources(piece, member);
    int rank = source.rank(piece.cells, member);
    int targetPlace = meshesOverlap ? target.mesh.placeOf(rank) : -1;
    if (targetPlace >= 0) {
      int[] cells = target.cellsOf(targetPlace);
      if (overlapSize(piece, cells) > 0) {
        routes.add(
            new Route(
                rank, Transport.LOCAL, sources, List.of(rank), overlaps(piece, cells), terms));
      }
    }
    int share = Math.floorMod(member - turn, source.members);
    Stretch stretch =
        new Stretch(piece, rank, sources, piece.shares.start(share), piece.shares.start(share + 1));
    if (stretch.start < Shares.END) {
      stretch.collect(0, 0, 1, new int[piece.cells.length], routes);
    }
  }

  /** The routes into the rank at {@code place} of the target mesh from other ranks. */
  private List<Route> into(int place, int placeInSource) {
    int ndim = source.cuts.length;
    int[] cells = target.cellsOf(place);
    int member = target.memberOf(place);
    int[] ownCells = placeInSource < 0 ? null : source.cellsOf(placeInSource);
    int[][] met = new int[ndim][];
    for (int d = 0; d < ndim; d++) {
      met[d] = cellsMet(source.cuts[d], bounds(targetBounds, target, d, cells[d]));
    }
    List<Route> routes = new ArrayList<>();
    int[] at = new int[ndim];
    for (int d = 0; d < ndim; d++) {
      if (met[d].length == 0) {
        return routes;
      }
    }
    int d;
    do {
      int[] sourceCells = new int[ndim];
      for (d = 0; d < ndim; d++) {
        sourceCells[d] = met[d][at[d]];
      }
      if (!Arrays.equals(sourceCells, ownCells)) {
        addInto(piece(sourceCells), cells, member, routes);
      }
      for (d = ndim - 1; d >= 0 && ++at[d] == met[d].length; d--) {
        at[d] = 0;
      }
    } while (d >= 0);
    return routes;
  }

  private void addInto(Piece piece, int[] cells, int targetMember, List<Route> routes) {
    long before = elementsBefore(piece, cells);
    long size = overlapSize(piece, cells);
    int shift = piece.shares.shift();
    long first = before >> shift;
    long length = (before + size >> shift) - first;
    int share = piece.shares.memberAt(first * target.members + length * targetMember);
    int member = (share + turn) % source.members;
    Stretch stretch =
        new Stretch(
            piece,
            source.rank(piece.cells, member),
            sources(piece, member),
            piece.shares.start(share),
            piece.shares.start(share + 1));
    stretch.add(before, size, cells, routes);
  }

  /** The stretch of one sender on the axis of {@link Shares}. */
  private final class Stretch {
    final Piece piece;
    final int rank;
    final List<Integer> sources;
    final long start;
    final long end;

    Stretch(Piece piece, int rank, List<Integer> sources, long start, long end) {
      this.piece = piece;
      this.rank = rank;
      this.sources = sources;
      this.start = start;
      this.end = end;
    }

    /**
     * Adds the routes of all target cells that begin with {@code cells[0..d)}.
     *
     * @param before elements of the piece in lesser target cells
     * @param width elements of the fixed dimensions' overlap
     */
    void collect(int d, long before, long width, int[] cells, List<Route> routes) {
      if (d == cells.length) {
        add(before, width, cells.clone(), routes);
        return;
      }
      Cut cut = target.cuts[d];
      long[] bounds = piece.bounds[d];
      long unit = width;
      for (int i = d + 1; i < cells.length; i++) {
        unit *= piece.lengths[i];
      }
      int shift = piece.shares.shift();
      long least = start / target.members << shift;
      long passed = least <= before ? 0 : (least - before - 1) / unit;
      int cell = 0;
      while (passed < piece.lengths[d]) {
        cell = cut.cellAt(bounds, passed, cell);
        passed = cut.countInBelow(bounds, cell);
        long from = before + unit * passed;
        if (end != Shares.END && (from >> shift) * target.members >= end) {
          return;
        }
        long length = cut.countIn(bounds, cell);
        cells[d] = cell;
        collect(d + 1, from, width * length, cells, routes);
        passed += length;
      }
    }

    /** Adds the route of one target cell to those of its members that this stretch serves. */
    void add(long before, long size, int[] cells, List<Route> routes) {
      int shift = piece.shares.shift();
      long first = (before >> shift) * target.members;
      long length = (before + size >> shift) - (before >> shift);
      int low = firstMemberFrom(start, first, length);
      int high = end == Shares.END ? target.members : firstMemberFrom(end, first, length);
      List<Integer> targets = targets(piece, cells, low, high);
      if (!targets.isEmpty()) {
        Transport transport = targets.size() > 1 ? Transport.BROADCAST : Transport.P2P;
        routes.add(new Route(rank, transport, sources, targets, overlaps(piece, cells), terms));
      }
    }

    private int firstMemberFrom(long place, long first, long length) {
      if (place <= first) {
        return 0;
      }
      if (length == 0) {
        return target.members;
      }
      return (int) Math.min(target.members, (place - first - 1) / length + 1);
    }
  }

  /** The ranks of target members {@code low} to {@code high} that do not hold the piece themselves. */
  private List<Integer> targets(Piece piece, int[] cells, int low, int high) {
    if (low >= high) {
      return List.of();
    }
    if (!meshesOverlap) {
      return high - low == 1 ? List.of(target.rank(cells, low)) : new Members(target, cells, low, high);
    }
    List<Integer> targets = new ArrayList<>(high - low);
    for (int member = low; member < high; member++) {
      int rank = target.rank(cells, member);
      int place = source.mesh.placeOf(rank);
      if (place < 0 || !Arrays.equals(source.cellsOf(place), piece.cells)) {
        targets.add(rank);
      }
    }
    return List.copyOf(targets);
  }

  private List<Integer> sources(Piece piece, int member) {
    int[] group = source.group(member);
    Integer[] ranks = new Integer[group.length];
    for (int i = 0; i < group.length; i++) {
      ranks[i] = source.rank(piece.cells, group[i]);
    }
    return List.of(ranks);
  }

  private Overlap[] overlaps(Piece piece, int[] cells) {
    Overlap[] found = new Overlap[cells.length];
    for (int d = 0; d < cells.length; d++) {
      int dim = d;
      long key = (long) piece.cells[d] << 32 | cells[d];
      found[d] =
          overlaps
              .get(d)
              .computeIfAbsent(
                  key,
                  k ->
                      Overlap.of(
                          piece.bounds[dim], bounds(targetBounds, target, dim, cells[dim])));
    }
    return found;
  }

  private Piece piece(int[] cells) {
    return pieces.computeIfAbsent(source.index(cells), index -> newPiece(cells));
  }

  private Piece newPiece(int[] cells) {
    long[][] bounds = new long[cells.length][];
    long[] lengths = new long[cells.length];
    long size = 1;
    for (int d = 0; d < cells.length; d++) {
      bounds[d] = bounds(sourceBounds, source, d, cells[d]);
      lengths[d] = source.cuts[d].length(cells[d]);
      size *= lengths[d];
    }
    Piece bare = new Piece(cells, bounds, lengths, size, null);
    long[][] holes = meshesOverlap && size > 0 ? holes(bare) : new long[0][];
    Shares shares = new Shares(size, source.members, target.members, holes);
    return new Piece(cells, bounds, lengths, size, shares);
  }

  /** Places and lengths, on the axis of {@link Shares}, of what the piece's members copy to themselves. */
  private long[][] holes(Piece piece) {
    int shift = Shares.shift(piece.size, source.members, target.members);
    List<long[]> holes = new ArrayList<>();
    for (int member = 0; member < source.members; member++) {
      int place = target.mesh.placeOf(source.rank(piece.cells, member));
      if (place < 0) {
        continue;
      }
      int[] cells = target.cellsOf(place);
      long size = overlapSize(piece, cells);
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
  private long overlapSize(Piece piece, int[] cells) {
    long size = 1;
    for (int d = 0; d < cells.length && size > 0; d++) {
      size *= target.cuts[d].countIn(piece.bounds[d], cells[d]);
    }
    return size;
  }

  /** Elements of the piece in row-major lesser target cells. */
  private long elementsBefore(Piece piece, int[] cells) {
    long before = 0;
    long width = 1;
    long rest = piece.size;
    for (int d = 0; d < cells.length; d++) {
      rest /= piece.lengths[d];
      before += width * target.cuts[d].countInBelow(piece.bounds[d], cells[d]) * rest;
      width *= target.cuts[d].countIn(piece.bounds[d], cells[d]);
    }
    return before;
  }

  /** The cells of {@code cut} that hold elements of {@code bounds}, ascending. */
  private static int[] cellsMet(Cut cut, long[] bounds) {
    long total = 0;
    for (int i = 0; i < bounds.length; i += 2) {
      total += bounds[i + 1] - bounds[i];
    }
    int[] met = new int[4];
    int size = 0;
    int cell = 0;
    for (long passed = 0; passed < total; passed += cut.countIn(bounds, cell)) {
      cell = cut.cellAt(bounds, passed, cell);
      met = size == met.length ? Arrays.copyOf(met, 2 * size) : met;
      met[size++] = cell;
    }
    return Arrays.copyOf(met, size);
  }

  private static long[] bounds(List<Map<Integer, long[]>> known, Grid grid, int dim, int cell) {
    return known.get(dim).computeIfAbsent(cell, c -> grid.cuts[dim].bounds(c));
  }

  /** Consecutive members of one cell, as ranks. */
  private static final class Members extends AbstractList<Integer> {
    private final Grid grid;
    private final int[] cells;
    private final int low;
    private final int high;

    Members(Grid grid, int[] cells, int low, int high) {
      this.grid = grid;
      this.cells = cells;
      this.low = low;
      this.high = high;
    }

    @Override
    public Integer get(int index) {
      if (index < 0 || index >= high - low) {
        throw new IndexOutOfBoundsException(index);
      }
      return grid.rank(cells, low + index);
    }

    @Override
    public int size() {
      return high - low;
    }
  }
}
