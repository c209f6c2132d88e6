// SPDX-License-Identifier: Apache-2.0
package org.windlass.reshard.tensor;

import java.util.Arrays;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.Optional;
import java.util.Set;
import org.windlass.DType;
import org.windlass.ReduceOp;
import org.windlass.checkpoint.Checkpoint;
import org.windlass.checkpoint.LayoutFile;
import org.windlass.checkpoint.SafetensorsEntry;
import org.windlass.error.InvalidArgumentException;
import org.windlass.error.UnsupportedException;
import org.windlass.internal.Native;
import org.windlass.layout.Layout;

/** Describes the whole tensors of a checkpoint, and checks them against their layouts. */
public final class SourceTensors {
  /**
   * Limit for dimensions. An unaligned tensor moves with one more dimension, and a stacked one with
   * another.
   */
  static final int MAX_DIMS = Native.WL_MAX_DIMS - 2;

  private final Checkpoint in;
  private final Optional<Layout> defaultFrom;
  /** Rules that give source layouts, by tensor. */
  private final Map<String, Rule> rules;
  private final Map<String, Layout> ruled = new HashMap<>();

  /**
   * Reads the layouts of the tensors.
   *
   * @param rules the rules that give layouts, by tensor. Without {@code @}, they use the ranks of
   *     the default layout, or of the tensor's layout in {@code layout.json}
   */
  public SourceTensors(Checkpoint in, Optional<Layout> defaultFrom, Map<String, Rule> rules) {
    this.in = in;
    this.defaultFrom = defaultFrom;
    this.rules = rules;
    rules.forEach((name, rule) -> ruled.put(name, from(name, rule)));
  }

  private Layout from(String name, Rule rule) {
    Layout own = Layout.parse(rule.from().get());
    return defaultFrom
        .or(() -> entry(name).flatMap(LayoutFile.Entry::layout))
        .map(base -> rule.layout("from", rule.from().get(), base))
        .orElse(own);
  }

  /**
   * Refuses tensors that ranks hold in parts of unequal extents, which no layout describes.
   *
   * @throws InvalidArgumentException naming the first
   */
  public void refuseParts() {
    for (String name : in.names()) {
      entry(name)
          .flatMap(LayoutFile.Entry::parts)
          .ifPresent(
              parts -> {
                throw new InvalidArgumentException(
                    in.path() + ": tensor \"" + name + "\": layout.json says that it is fused of parts"
                        + " of extents " + parts.extents() + " along dimension " + parts.dim()
                        + ", each cut by itself as " + parts.layout()
                        + "; no layout reads that as one tensor. Reshard from the checkpoint that it"
                        + " was made of");
              });
    }
  }

  /** Returns the source layout of a tensor before defaults apply, if it has one. */
  public Optional<Layout> declared(String name) {
    return Optional.ofNullable(ruled.get(name))
        .or(() -> entry(name).flatMap(LayoutFile.Entry::layout))
        .or(() -> defaultFrom);
  }

  /**
   * Returns whether a tensor has the default layout. Shards of dimensions that it lacks are R
   * there.
   */
  public boolean takesDefault(String name) {
    return !ruled.containsKey(name) && entry(name).flatMap(LayoutFile.Entry::layout).isEmpty();
  }

  /**
   * Checks that every rank of the source has a file, every file belongs to a source rank, and each
   * tensor has a layout.
   */
  public void checkRankFiles() {
    Set<Integer> found = in.ranks().keySet();
    Map<Integer, Layout> expected = new LinkedHashMap<>();
    Map<String, Layout> layouts = new LinkedHashMap<>();
    for (String name : in.names()) {
      layouts.put(name, declared(name).orElseThrow());
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

  private Optional<LayoutFile.Entry> entry(String name) {
    return in.layouts().map(file -> file.tensors().get(name));
  }

  /**
   * Returns one tensor, which has a layout.
   *
   * @throws InvalidArgumentException naming the tensor, the rank, and the expected and found values
   */
  public SourceTensor of(String name) {
    SourceTensor tensor = in.byRank() ? inRanks(name) : whole(name);
    if (tensor.shape().length > MAX_DIMS) {
      throw new UnsupportedException(
          "tensor \"" + name + "\": has " + tensor.shape().length + " dimensions; at most " + MAX_DIMS
              + " move");
    }
    Optional<ReduceOp> op = tensor.from().partialOp();
    if (op.isPresent() && !tensor.dtype().canReduce(op.get())) {
      throw new InvalidArgumentException(
          "tensor \"" + name + "\": " + tensor.dtype() + " does not reduce by " + op.get()
              + ", as the source layout " + tensor.from() + " asks");
    }
    return tensor;
  }

  private SourceTensor whole(String name) {
    SafetensorsEntry entry = in.whole(name).entry(name);
    Layout from = declared(name).orElseThrow();
    if (from.hasPartial()) {
      throw new InvalidArgumentException(
          "tensor \"" + name + "\": its source layout " + from + " holds P, and " + in.path()
              + " has whole tensors, which are no terms of a reduction");
    }
    Layout applied = applied(name, from, entry.shape().size());
    return new SourceTensor(name, name, entry.dims(), entry.dtype(), applied, !applied.equals(from));
  }

  private Layout applied(String name, Layout declared, int ndim) {
    Layout applied = takesDefault(name) ? declared.defaultedFor(ndim) : declared;
    if (ruled.containsKey(name)) {
      Objects.requireNonNull(rules.get(name)).requireFit("from", applied, name, ndim);
    } else {
      checkStored(name, applied, new long[ndim]);
    }
    return applied;
  }

  /** Checks that a layout of {@code layout.json} fits the tensor. */
  private static void checkStored(String name, Layout stored, long[] shape) {
    try {
      stored.check(name, shape);
    } catch (InvalidArgumentException misfit) {
      throw new InvalidArgumentException(LayoutFile.NAME + ": " + misfit.getMessage(), misfit);
    }
  }

  private SourceTensor inRanks(String name) {
    Layout declared = declared(name).orElseThrow();
    int firstRank = declared.mesh().rankAt(new int[declared.mesh().ndim()]);
    SafetensorsEntry first = local(name, firstRank, declared);
    for (int rank : declared.mesh().ranks()) {
      SafetensorsEntry found = local(name, rank, declared);
      if (found.dtype() != first.dtype()) {
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
          && Objects.requireNonNull(in.ranks().get(rank)).header().find(name).isPresent()) {
        throw disagrees(name, rank, "no such tensor, since its layout is " + declared, "one");
      }
    }
    int ndim = first.shape().size();
    Layout applied = applied(name, declared, ndim);
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
    DType dtype = first.dtype();
    entry(name).ifPresent(entry -> checkAgreement(name, shape, dtype, entry, applied));
    return new SourceTensor(name, name, shape, dtype, applied, !applied.equals(declared));
  }

  private SafetensorsEntry local(String name, int rank, Layout layout) {
    return Objects.requireNonNull(in.ranks().get(rank))
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

  /**
   * Returns the sums of local extents along the mesh dimensions that shard each tensor dimension.
   */
  private long[] globalShape(String name, Layout layout, int ndim) {
    long[] shape = new long[ndim];
    for (int d = 0; d < ndim; d++) {
      for (int place = 0; place < layout.mesh().size(); place++) {
        int rank = layout.mesh().rankAtPlace(place);
        if (onEdge(layout, rank, d)) {
          shape[d] += local(name, rank, layout).shape().get(d);
        }
      }
    }
    return shape;
  }

  /**
   * Returns whether all coordinates of a rank are 0, except those of the mesh dimensions that shard
   * {@code dim}.
   */
  private static boolean onEdge(Layout layout, int rank, int dim) {
    int[] coordinates = Objects.requireNonNull(layout.mesh().coordinates(rank));
    for (int m = 0; m < coordinates.length; m++) {
      if (Leg.dimension(layout.placements().get(m)) != dim && coordinates[m] != 0) {
        return false;
      }
    }
    return true;
  }

  private void checkAgreement(
      String name, long[] shape, DType dtype, LayoutFile.Entry entry, Layout applied) {
    if (!entry.shape().equals(Arrays.stream(shape).boxed().toList())) {
      throw new InvalidArgumentException(
          "tensor \"" + name + "\": layout.json says shape " + entry.shape()
              + ", and the rank files make " + Arrays.toString(shape) + " under " + applied);
    }
    DType said = entry.dtype().orElse(dtype);
    if (said != dtype) {
      throw new InvalidArgumentException(
          "tensor \"" + name + "\": layout.json says dtype " + said + ", and the rank files hold "
              + dtype);
    }
    if (entry.layout().isEmpty()) {
      return;
    }
    checkStored(name, entry.layout().get(), shape);
    Optional<Layout> asked = ruled.containsKey(name) ? Optional.of(applied) : defaultFrom;
    asked
        .map(layout -> layout.defaultedFor(shape.length))
        .filter(layout -> !sameHolding(layout, entry.layout().get(), shape))
        .ifPresent(
            layout -> {
              throw new InvalidArgumentException(
                  "tensor \"" + name + "\": layout.json says layout " + entry.layout().get() + ", and "
                      + (ruled.containsKey(name) ? "its rule" : "from()") + " says " + layout);
            });
  }

  /** Returns whether two layouts give every rank the same part, as the same kind of value. */
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

  private static InvalidArgumentException disagrees(
      String name, int rank, String expected, String found) {
    return new InvalidArgumentException(
        "tensor \"" + name + "\": rank " + rank + ": expected " + expected + "; found " + found);
  }
}
