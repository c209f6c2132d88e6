// SPDX-License-Identifier: Apache-2.0
package org.windlass.cli.reshard;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import org.windlass.DType;
import org.windlass.InvalidArgumentException;
import org.windlass.Layout;
import org.windlass.Placement;
import org.windlass.ReduceOp;
import org.windlass.UnsupportedException;
import org.windlass.checkpoint.Checkpoint;
import org.windlass.checkpoint.LayoutFile;
import org.windlass.checkpoint.SafetensorsEntry;
import org.windlass.internal.Native;

/**
 * What a request means for each tensor of a checkpoint, with everything checked that can be before
 * a byte moves.
 */
final class MoveList {
  // Unaligned tensors move with one dimension more.
  private static final int MAX_DIMS = Native.WL_MAX_DIMS - 1;

  private final Checkpoint in;
  private final ReshardRequest request;
  private final Optional<Layout> defaultFrom;
  private final Layout to;
  private final Map<String, String> scales;
  private final List<TensorMove> moves = new ArrayList<>();

  private MoveList(Checkpoint in, ReshardRequest request) {
    this.in = in;
    this.request = request;
    this.defaultFrom = request.from().map(Layout::parse);
    this.to = target();
    this.scales = scales(in.names());
  }

  /**
   * Works the moves out.
   *
   * @throws InvalidArgumentException naming tensor, rank, what was expected and what was found
   */
  static MoveList of(Checkpoint in, ReshardRequest request) {
    MoveList list = new MoveList(in, request);
    list.checkRequest();
    if (in.byRank()) {
      list.checkRankFiles();
    }
    for (String name : in.names()) {
      list.moves.add(list.move(name));
    }
    return list;
  }

  /** The moves, in the checkpoint's order. */
  List<TensorMove> moves() {
    return moves;
  }

  /** The ranks that the target layout has, ascending. */
  List<Integer> targetRanks() {
    return to.mesh().ranks().stream().sorted().toList();
  }

  /** A target without ranks follows the highest rank of any source layout. */
  private Layout target() {
    Layout highest = defaultFrom.orElse(null);
    for (LayoutFile.Entry entry :
        in.layouts().map(LayoutFile::tensors).orElse(Map.of()).values()) {
      Layout layout = entry.layout().orElse(null);
      if (layout != null
          && (highest == null
              || layout.mesh().highestRank() > highest.mesh().highestRank())) {
        highest = layout;
      }
    }
    if (highest == null) {
      throw new InvalidArgumentException(
          in.path() + ": --from is missing, and no layout.json gives layouts");
    }
    return Layout.parseTarget(request.to(), highest);
  }

  private void checkRequest() {
    if (to.hasPartial()) {
      throw new InvalidArgumentException("--to " + to + ": a target cannot be Partial");
    }
    if (!in.byRank() && defaultFrom.orElseThrow().hasPartial()) {
      throw new InvalidArgumentException(
          "--from " + defaultFrom.get() + ": holds P, and " + in.path()
              + " has whole tensors, which are no terms of a reduction");
    }
    request.dtype().ifPresent(dtype -> checkCastable("--dtype", dtype));
    request.wire().ifPresent(dtype -> checkCastable("--wire", dtype));
  }

  private static void checkCastable(String option, DType dtype) {
    if (!castable(dtype)) {
      throw new InvalidArgumentException(
          option + " " + dtype + ": not a dtype that floating tensors are cast to; those are f64 f32 f16"
              + " bf16 f8e4m3 f8e5m2");
    }
  }

  private static boolean castable(DType dtype) {
    return dtype.isFloating() && dtype.canCast(DType.F32);
  }

  /** Every rank of the source has a file, and every file is a source rank's. */
  private void checkRankFiles() {
    Set<Integer> found = in.ranks().keySet();
    Map<Integer, Layout> expected = new LinkedHashMap<>();
    Map<String, Layout> layouts = new LinkedHashMap<>();
    for (String name : in.names()) {
      layouts.put(name, declared(name));
    }
    if (layouts.isEmpty()) {
      defaultFrom.ifPresent(layout -> layouts.put("", layout));
    }
    layouts.values().stream()
        .distinct()
        .forEach(
            layout -> layout.mesh().ranks().forEach(rank -> expected.putIfAbsent(rank, layout)));
    expected.forEach(
        (rank, layout) -> {
          if (!found.contains(rank)) {
            throw new InvalidArgumentException(
                in.path() + ": " + Checkpoint.rankFile(rank) + " is missing; rank " + rank
                    + " is in the source layout " + layout);
          }
        });
    for (int rank : found) {
      if (!expected.containsKey(rank)) {
        throw new InvalidArgumentException(
            in.path() + ": " + Checkpoint.rankFile(rank) + " is there, and rank " + rank
                + " is in no source layout, such as " + expected.values().iterator().next());
      }
    }
  }

  /** The source layout that a tensor has before defaults apply. */
  private Layout declared(String name) {
    Optional<Layout> fromFile = entry(name).flatMap(LayoutFile.Entry::layout);
    return fromFile
        .or(() -> defaultFrom)
        .orElseThrow(
            () ->
                new InvalidArgumentException(
                    "tensor \"" + name + "\": layout.json gives no layout for it, and --from is"
                        + " missing"));
  }

  private Optional<LayoutFile.Entry> entry(String name) {
    return in.layouts().map(file -> file.tensors().get(name));
  }

  private TensorMove move(String name) {
    return in.byRank() ? rankMove(name) : wholeMove(name);
  }

  private TensorMove wholeMove(String name) {
    SafetensorsEntry entry = in.whole(name).entry(name);
    Layout from = defaultFrom.orElseThrow();
    Layout applied = from.defaultedFor(entry.shape().size());
    return move(name, entry.dims(), entry.dtype(), applied, !applied.equals(from));
  }

  private TensorMove rankMove(String name) {
    Layout declared = declared(name);
    SafetensorsEntry first = null;
    int firstRank = -1;
    for (int rank : declared.mesh().ranks()) {
      SafetensorsEntry found = local(name, rank, declared);
      if (first == null) {
        first = found;
        firstRank = rank;
      } else if (found.dtype() != first.dtype()) {
        throw disagrees(
            name, rank, "dtype " + first.dtype() + " as on rank " + firstRank, "" + found.dtype());
      } else if (found.shape().size() != first.shape().size()) {
        throw disagrees(
            name,
            rank,
            first.shape().size() + " dimensions as on rank " + firstRank,
            "shape " + found.shape());
      }
    }
    for (int rank : in.ranks().keySet()) {
      if (!declared.mesh().contains(rank)
          && in.ranks().get(rank).header().find(name).isPresent()) {
        throw disagrees(name, rank, "no such tensor, since its layout is " + declared, "one");
      }
    }
    int ndim = first.shape().size();
    boolean fromFile = entry(name).flatMap(LayoutFile.Entry::layout).isPresent();
    Layout applied = fromFile ? declared : declared.defaultedFor(ndim);
    applied.check(name, new long[ndim]);
    long[] shape = globalShape(name, applied, ndim);
    for (int rank : applied.mesh().ranks()) {
      long[] expected = applied.localShape(shape, rank);
      List<Long> found = local(name, rank, applied).shape();
      if (!found.equals(Arrays.stream(expected).boxed().toList())) {
        throw disagrees(
            name,
            rank,
            "shape " + Arrays.toString(expected) + " of the global " + Arrays.toString(shape)
                + " under " + applied,
            "shape " + found);
      }
    }
    entry(name).ifPresent(entry -> checkAgreement(name, shape, entry, applied));
    return move(name, shape, dtypeOf(name, first, entry(name)), applied, !applied.equals(declared));
  }

  private SafetensorsEntry local(String name, int rank, Layout layout) {
    return in.ranks()
        .get(rank)
        .header()
        .find(name)
        .orElseThrow(
            () ->
                disagrees(
                    name,
                    rank,
                    "the tensor, with a zero extent if its piece is empty, since its layout is "
                        + layout,
                    "none"));
  }

  /** The sums of local extents along the mesh dimensions that shard each tensor dimension. */
  private long[] globalShape(String name, Layout layout, int ndim) {
    long[] shape = new long[ndim];
    for (int d = 0; d < ndim; d++) {
      for (int place = 0; place < layout.mesh().size(); place++) {
        int rank = layout.mesh().rankOf(place);
        if (onEdge(layout, rank, d)) {
          shape[d] += local(name, rank, layout).shape().get(d);
        }
      }
    }
    return shape;
  }

  /**
   * Whether all coordinates of a rank are 0 but those of the mesh dimensions that shard {@code
   * dim}.
   */
  private static boolean onEdge(Layout layout, int rank, int dim) {
    int[] coordinates = layout.mesh().coordinates(rank);
    for (int m = 0; m < coordinates.length; m++) {
      Placement placement = layout.placements().get(m);
      boolean shards =
          placement instanceof Placement.Shard shard && shard.dim() == dim
              || placement instanceof Placement.StridedShard strided && strided.dim() == dim;
      if (!shards && coordinates[m] != 0) {
        return false;
      }
    }
    return true;
  }

  private void checkAgreement(
      String name, long[] shape, LayoutFile.Entry entry, Layout applied) {
    if (!entry.shape().equals(Arrays.stream(shape).boxed().toList())) {
      throw new InvalidArgumentException(
          "tensor \"" + name + "\": layout.json says shape " + entry.shape()
              + ", and the rank files make " + Arrays.toString(shape) + " under " + applied);
    }
    if (defaultFrom.isPresent() && entry.layout().isPresent()) {
      Layout asked = defaultFrom.get().defaultedFor(shape.length);
      if (!sameHolding(asked, applied, shape)) {
        throw new InvalidArgumentException(
            "tensor \"" + name + "\": layout.json says layout " + applied + ", and --from says "
                + asked);
      }
    }
  }

  private static DType dtypeOf(
      String name, SafetensorsEntry first, Optional<LayoutFile.Entry> entry) {
    entry
        .flatMap(LayoutFile.Entry::dtype)
        .ifPresent(
            said -> {
              if (said != first.dtype()) {
                throw new InvalidArgumentException(
                    "tensor \"" + name + "\": layout.json says dtype " + said
                        + ", and the rank files hold " + first.dtype());
              }
            });
    return first.dtype();
  }

  /** Whether two layouts give every rank the same part, as the same kind of value. */
  private static boolean sameHolding(Layout a, Layout b, long[] shape) {
    if (a.hasPartial() || b.hasPartial()) {
      return a.placements().equals(b.placements()) && a.mesh().ranks().equals(b.mesh().ranks());
    }
    if (a.mesh().size() != b.mesh().size()) {
      return false;
    }
    for (int rank : a.mesh().ranks()) {
      if (!b.mesh().contains(rank)
          || !a.localRegion(shape, rank).equals(b.localRegion(shape, rank))) {
        return false;
      }
    }
    return true;
  }

  private TensorMove move(
      String name, long[] shape, DType source, Layout from, boolean fromDefaulted) {
    if (shape.length > MAX_DIMS) {
      throw new UnsupportedException(
          "tensor \"" + name + "\": has " + shape.length + " dimensions; at most " + MAX_DIMS
              + " move");
    }
    Layout applied = to.defaultedFor(shape.length);
    Optional<ReduceOp> op = from.partialOp();
    if (op.isPresent() && !source.canReduce(op.get())) {
      throw new InvalidArgumentException(
          "tensor \"" + name + "\": " + source + " does not reduce by " + op.get()
              + ", as the source layout " + from + " asks");
    }
    boolean floating = castable(source);
    DType target = floating ? request.dtype().orElse(source) : source;
    Optional<DType> wire = floating ? request.wire() : Optional.empty();
    TensorMove move =
        new TensorMove(
            name, shape, source, target, wire, from, applied, fromDefaulted || !applied.equals(to));
    checkScales(move);
    return move;
  }

  private void checkScales(TensorMove move) {
    boolean f8 = move.source() == DType.F8E4M3 || move.source() == DType.F8E5M2;
    boolean cast =
        move.target() != move.source() || move.wire().orElse(move.source()) != move.source();
    if (!f8 || !cast || request.ignoreScales()) {
      return;
    }
    String scale = scales.get(parent(move.name()));
    if (scale != null) {
      throw new InvalidArgumentException(
          "tensor \"" + move.name() + "\": casting " + move.source() + " to "
              + (move.target() == move.source() ? move.wire().get() : move.target())
              + " leaves out its scales in \"" + scale + "\"; --ignore-scales casts it all the same");
    }
  }

  /**
   * For each module, by its tensors' common name up to the last dot, a tensor that holds scales.
   */
  private static Map<String, String> scales(Set<String> names) {
    Map<String, String> scales = new HashMap<>();
    for (String name : names) {
      if (name.indexOf("_scale", parent(name).length()) >= 0) {
        scales.putIfAbsent(parent(name), name);
      }
    }
    return scales;
  }

  private static String parent(String name) {
    return name.substring(0, name.lastIndexOf('.') + 1);
  }

  private static InvalidArgumentException disagrees(
      String name, int rank, String expected, String found) {
    return new InvalidArgumentException(
        "tensor \"" + name + "\": rank " + rank + ": expected " + expected + "; found " + found);
  }
}
