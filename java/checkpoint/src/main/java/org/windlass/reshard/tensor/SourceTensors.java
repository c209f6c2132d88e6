// SPDX-License-Identifier: Apache-2.0
package org.windlass.reshard.tensor;

import java.util.Arrays;
import java.util.Collection;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.Optional;
import java.util.Set;
import java.util.function.Function;
import java.util.stream.IntStream;
import java.util.stream.Stream;
import org.windlass.DType;
import org.windlass.ReduceOp;
import org.windlass.checkpoint.Checkpoint;
import org.windlass.checkpoint.LayoutFile;
import org.windlass.checkpoint.SafetensorsEntry;
import org.windlass.error.InvalidArgumentException;
import org.windlass.error.UnsupportedException;
import org.windlass.internal.Native;
import org.windlass.layout.DeviceMesh;
import org.windlass.layout.Layout;
import org.windlass.layout.Placement;

/** Describes the whole tensors of a checkpoint, and checks them against their layouts. */
public final class SourceTensors {
  /**
   * Largest number of dimensions of a tensor. The move of an unaligned tensor adds a dimension, and
   * so does a stack.
   */
  static final int MAX_DIMS = Native.WL_MAX_DIMS - 2;

  private final Checkpoint in;
  private final Optional<Layout> defaultFrom;
  private final Collection<String> names;
  private final Function<String, Rule> ruleOf;
  private final Shared shared;
  /** Source layouts that rules give. A tensor has one, or one for each of its parts. */
  private final Map<String, List<Layout>> ruled = new HashMap<>();

  /**
   * Reads the layouts of the tensors.
   *
   * @param names the stored tensors that are read
   * @param ruleOf returns a tensor's rule. If the rule's layouts have no {@code @}, they use the
   *     ranks of the default layout, or of the tensor's layout in {@code layout.json}
   * @param shared cache of objects that tensors have in common
   */
  public SourceTensors(
      Checkpoint in,
      Optional<Layout> defaultFrom,
      Collection<String> names,
      Function<String, Rule> ruleOf,
      Shared shared) {
    this.in = in;
    this.defaultFrom = defaultFrom;
    this.names = names;
    this.ruleOf = ruleOf;
    this.shared = shared;
    for (String name : names) {
      if (ruleOf.apply(name).from().isPresent()) {
        ruled.put(name, from(name, ruleOf.apply(name)));
      }
    }
  }

  private List<Layout> from(String name, Rule rule) {
    Optional<Layout> base = defaultFrom.or(() -> stored(name));
    List<Optional<String>> texts =
        rule.splits() ? rule.parts().get().from() : List.of(rule.from());
    return texts.stream()
        .map(Optional::get)
        .map(text -> base.map(on -> rule.layout("from", text, on)).orElse(Layout.parse(text)))
        .toList();
  }

  /** Returns the layout of a tensor, or of its first part, in {@code layout.json}. */
  private Optional<Layout> stored(String name) {
    return entry(name)
        .flatMap(entry -> entry.layout().or(() -> entry.parts().map(p -> p.layouts().get(0))));
  }

  /**
   * Returns the source layout that a rule or {@code layout.json} gives to a tensor, if there is
   * one.
   */
  public Optional<Layout> declared(String name) {
    return Optional.ofNullable(ruled.get(name))
        .map(layouts -> layouts.get(0))
        .or(() -> stored(name))
        .or(() -> defaultFrom);
  }

  /**
   * Returns whether the default layout applies to a tensor. If the default layout shards a
   * dimension that the tensor lacks, the tensor is replicated instead.
   */
  public boolean takesDefault(String name) {
    return !ruled.containsKey(name) && stored(name).isEmpty();
  }

  /**
   * Throws unless every rank of the source has a file, every file belongs to a source rank, and
   * each tensor has a layout.
   */
  public void checkRankFiles() {
    Set<Integer> found = in.ranks().keySet();
    Map<Integer, Layout> expected = new LinkedHashMap<>();
    Stream<Layout> layouts =
        names.isEmpty()
            ? defaultFrom.stream()
            : names.stream().map(name -> declared(name).orElseThrow());
    layouts
        .distinct()
        .forEach(
            layout -> layout.mesh().ranks().forEach(rank -> expected.putIfAbsent(rank, layout)));
    expected.forEach(
        (rank, layout) -> {
          if (!found.contains(rank)) {
            throw new InvalidArgumentException(
                in.path() + ": " + Checkpoint.rankFile(rank) + " is missing; rank " + rank
                    + " is in the source layout " + layout
                    + ", so add the file, or correct the layout");
          }
        });
    for (int rank : found) {
      if (!expected.containsKey(rank)) {
        throw new InvalidArgumentException(
            in.path() + ": " + Checkpoint.rankFile(rank) + " exists, but rank " + rank
                + " is not in the source layouts, such as " + expected.values().iterator().next()
                + "; move the file away, or correct the layout");
      }
    }
  }

  private Optional<LayoutFile.Entry> entry(String name) {
    return in.layouts().map(file -> file.tensors().get(name));
  }

  /**
   * Returns the tensor of that name. It must have a layout.
   *
   * @throws InvalidArgumentException with a message that names the tensor, the rank, and the
   *     expected and found values
   */
  public SourceTensor of(String name) {
    SourceTensor tensor = in.byRank() ? inRanks(name) : whole(name);
    if (tensor.shape().length > MAX_DIMS) {
      throw new UnsupportedException(
          "tensor \"" + name + "\": has " + tensor.shape().length + " dimensions; at most " + MAX_DIMS
              + " move, so leave it out with a rule that has \"drop\"");
    }
    Optional<ReduceOp> op = tensor.from().partialOp();
    if (op.isPresent() && !tensor.dtype().canReduce(op.get())) {
      throw new InvalidArgumentException(
          "tensor \"" + name + "\": " + tensor.dtype() + " can't be reduced by " + op.get()
              + ", as the source layout " + tensor.from() + " asks; a rule with \"from\": \""
              + tensor.from().mesh().size() + ":R\" takes it from one rank");
    }
    DeviceMesh mesh = tensor.from().mesh();
    long terms =
        IntStream.range(0, mesh.ndim())
            .filter(m -> tensor.from().placements().get(m) instanceof Placement.Partial)
            .mapToLong(mesh::size)
            .reduce(1, (a, b) -> a * b);
    if (terms > Native.WL_MAX_RANKS) {
      throw new UnsupportedException(
          "tensor \"" + name + "\": its source layout has " + terms + " terms; at most "
              + Native.WL_MAX_RANKS + " are reduced; reduce it in two reshards");
    }
    return tensor;
  }

  private SourceTensor whole(String name) {
    SafetensorsEntry entry = in.whole(name).entry(name);
    Layout from = declared(name).orElseThrow();
    if (from.hasPartial()) {
      throw new InvalidArgumentException(
          "tensor \"" + name + "\": "
              + (takesDefault(name) ? "from() " : ruleOf.apply(name).where() + ".from ") + from
              + " holds P, and " + in.path()
              + " holds whole tensors; use 1:R as the source layout");
    }
    Layout applied = applied(name, from, entry.shape().size());
    Optional<List<Long>> said = ruleOf.apply(name).pad().flatMap(Rule.Form.Pad::shape);
    if (said.isPresent() && !said.get().equals(entry.shape())) {
      throw notPadded(name, entry.shape(), said.get(), said.get());
    }
    Division division = Division.plain(applied, entry.dims());
    return tensor(name, entry.dims(), entry.dtype(), division, !applied.equals(from));
  }

  private SourceTensor tensor(
      String name, long[] shape, DType dtype, Division division, boolean defaulted) {
    return new SourceTensor(
        name, name, shared.one(shape), dtype, shared.one(division), defaulted);
  }

  private Layout applied(String name, Layout declared, int ndim) {
    Layout applied = takesDefault(name) ? declared.defaultedFor(ndim) : declared;
    if (ruled.containsKey(name)) {
      ruled.get(name).forEach(each -> ruleOf.apply(name).requireFit("from", each, name, ndim));
    } else {
      checkStored(name, applied, new long[ndim]);
    }
    return applied;
  }

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
      boolean isOther = found.dtype() != first.dtype();
      if (isOther || found.shape().size() != first.shape().size()) {
        String own = isOther ? "dtype " + first.dtype() : first.shape().size() + " dimensions";
        throw disagrees(
            name,
            rank,
            own + " as on rank " + firstRank,
            isOther ? "" + found.dtype() : "shape " + found.shape());
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
    Division division = division(name, applied, globalShape(name, applied, ndim), first);
    long[] shape = ownShape(name, division);
    division.check(name);
    for (int rank : applied.mesh().ranks()) {
      long[] expected = division.held(shape, rank).shape();
      List<Long> found = local(name, rank, applied).shape();
      if (!found.equals(Arrays.stream(expected).boxed().toList())) {
        throw disagrees(
            name,
            rank,
            "shape " + Arrays.toString(expected) + " of the global " + Arrays.toString(shape)
                + " under " + division,
            "shape " + found);
      }
    }
    DType dtype = first.dtype();
    entry(name).ifPresent(entry -> checkAgreement(name, shape, dtype, entry, division));
    return tensor(name, shape, dtype, division, !applied.equals(declared));
  }

  /**
   * Returns how ranks hold a tensor in their files.
   *
   * @param sums the global shape, from the ranks' local extents
   * @param local a rank's local tensor
   */
  private Division division(String name, Layout applied, long[] sums, SafetensorsEntry local) {
    Rule rule = ruleOf.apply(name);
    if (!ruled.containsKey(name) && entry(name).flatMap(LayoutFile.Entry::parts).isPresent()) {
      return Division.of(LayoutFile.NAME + ": tensor \"" + name + "\"", entry(name).get());
    }
    if (!rule.splits()) {
      return Division.plain(applied, sums);
    }
    Rule.Form.Parts parts = rule.parts().get();
    Division plain = Division.plain(applied, sums);
    SourceTensor shown =
        new SourceTensor(name, name, local.dims(), local.dtype(), plain, false);
    int dim = Axes.of(rule, shown).stored().get(parts.dim());
    if (ruled.containsKey(name)) {
      sums[dim] = parts.extents().stream().mapToLong(Long::longValue).sum();
      String where = rule.where() + ".from: " + rule.from().get();
      return Division.of(where, parts, dim, parts.extents(), ruled.get(name), sums);
    }
    boolean isPlain =
        applied.placements().stream().anyMatch(p -> p instanceof Placement.Shard s && s.dim() == dim);
    if (takesDefault(name) && isPlain && Division.pieces(applied, dim) > 1) {
      throw new InvalidArgumentException(
          rule.where() + ": from() " + applied + " cuts dimension " + dim + " of tensor \""
              + name + "\", along which the rule splits it. If each rank's file has its piece of"
              + " each part, give the rule \"from\": \"" + applied
              + "\"; otherwise reshard to 1:R first, without the rule");
    }
    return plain;
  }

  /** Returns a tensor's shape without the zeros that were appended to it. */
  private long[] ownShape(String name, Division division) {
    List<Long> held = division.padded();
    Optional<LayoutFile.Entry> entry = entry(name);
    Optional<Rule.Form.Pad> pad = ruleOf.apply(name).pad();
    Optional<List<Long>> listed = entry.flatMap(LayoutFile.Entry::padded);
    Optional<List<Long>> own =
        pad.flatMap(Rule.Form.Pad::shape).or(() -> entry.map(LayoutFile.Entry::shape));
    if (pad.isEmpty() && listed.isEmpty()) {
      return longs(held);
    }
    if (own.isPresent()) {
      List<Long> padded = listed.orElseGet(() -> pad.get().padded(division.layout(), own.get()));
      boolean isOther = listed.isPresent() && !own.equals(entry.map(LayoutFile.Entry::shape));
      if (isOther || !padded.equals(held) && (listed.isPresent() || !own.get().equals(held))) {
        throw notPadded(name, held, own.get(), padded);
      }
      return longs(own.get());
    }
    for (Placement placement : division.layout().placements()) {
      int dim = Axes.dimension(placement);
      if (dim >= 0 && held.get(dim) > 0 && held.get(dim) % pad.get().to() == 0) {
        throw new InvalidArgumentException(
            ruleOf.apply(name).where() + ".pad_to: the files of tensor \"" + name
                + "\" together have shape " + held + "; its size along dimension " + dim
                + " is a multiple of " + pad.get().to() + ", so its end may or may not be padding;"
                + " give the shape without padding as \"shape\" in the rule");
      }
    }
    return longs(held);
  }

  private static long[] longs(List<Long> numbers) {
    return numbers.stream().mapToLong(Long::longValue).toArray();
  }

  private static InvalidArgumentException notPadded(
      String name, List<Long> held, List<Long> own, List<Long> padded) {
    return new InvalidArgumentException(
        "tensor \"" + name + "\": its files make shape " + held + ", and by its rule or layout.json"
            + " it is " + own + (padded.equals(own) ? "" : ", padded to " + padded)
            + "; correct \"shape\" there");
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
   * Returns the sums of the local extents along the mesh dimensions that shard them, at coordinate
   * 0 of the other mesh dimensions.
   */
  private long[] globalShape(String name, Layout layout, int ndim) {
    long[] shape = new long[ndim];
    for (int rank : layout.mesh().ranks()) {
      int[] coordinates = Objects.requireNonNull(layout.mesh().coordinates(rank));
      List<Long> local = local(name, rank, layout).shape();
      for (int d = 0; d < ndim; d++) {
        int dim = d;
        boolean isOnEdge =
            IntStream.range(0, coordinates.length)
                .allMatch(
                    m ->
                        coordinates[m] == 0
                            || Axes.dimension(layout.placements().get(m)) == dim);
        shape[d] += isOnEdge ? local.get(d) : 0;
      }
    }
    return shape;
  }

  private void checkAgreement(
      String name, long[] shape, DType dtype, LayoutFile.Entry entry, Division division) {
    if (!entry.shape().equals(Arrays.stream(shape).boxed().toList())) {
      throw new InvalidArgumentException(
          "tensor \"" + name + "\": layout.json says shape " + entry.shape()
              + ", and the rank files make " + Arrays.toString(shape) + " under " + division
              + "; correct layout.json, or the layout");
    }
    DType said = entry.dtype().orElse(dtype);
    if (said != dtype) {
      throw new InvalidArgumentException(
          "tensor \"" + name + "\": layout.json says dtype " + said + ", and the rank files hold "
              + dtype + "; correct layout.json, or complete IN from one run");
    }
    if (stored(name).isEmpty()) {
      return;
    }
    entry
        .layout()
        .ifPresent(layout -> checkStored(name, layout, longs(entry.padded().orElse(entry.shape()))));
    Division listed = Division.of(LayoutFile.NAME, entry);
    boolean isRuled = ruled.containsKey(name);
    if (!isRuled && defaultFrom.isEmpty()) {
      return;
    }
    Division asked =
        isRuled
            ? division
            : Division.plain(defaultFrom.get().defaultedFor(shape.length), division.padded());
    asked.check(name);
    if (!sameHolding(asked, listed, shape)) {
      throw new InvalidArgumentException(
          "tensor \"" + name + "\": layout.json says " + (listed.isPlain() ? "layout " : "")
              + listed + ", and " + (isRuled ? "its rule" : "from()") + " says " + asked
              + (asked.isPlain() && !listed.isPlain() ? ", which cuts the whole tensor" : "")
              + "; leave it out to use the layout in layout.json");
    }
  }

  /** Returns whether two divisions give every rank the same indices and kind of value. */
  private static boolean sameHolding(Division a, Division b, long[] shape) {
    List<Integer> ranks = a.layout().mesh().ranks();
    if (a.layout().hasPartial() || b.layout().hasPartial()) {
      return a.layout().placements().equals(b.layout().placements())
          && ranks.equals(b.layout().mesh().ranks());
    }
    return Set.copyOf(ranks).equals(Set.copyOf(b.layout().mesh().ranks()))
        && ranks.stream()
            .allMatch(rank -> a.held(shape, rank).dims().equals(b.held(shape, rank).dims()));
  }

  private static InvalidArgumentException disagrees(
      String name, int rank, String expected, String found) {
    return new InvalidArgumentException(
        "tensor \"" + name + "\": rank " + rank + ": expected " + expected + "; found " + found
            + ". Correct the source layout, or " + Checkpoint.rankFile(rank));
  }
}
