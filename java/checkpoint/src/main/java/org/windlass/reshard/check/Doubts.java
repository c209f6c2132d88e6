// SPDX-License-Identifier: Apache-2.0
package org.windlass.reshard.check;

import java.util.ArrayList;
import java.util.HashSet;
import java.util.LinkedHashMap;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.function.Consumer;
import java.util.stream.IntStream;
import java.util.stream.Stream;
import org.windlass.ReduceOp;
import org.windlass.layout.Layout;
import org.windlass.layout.Placement;
import org.windlass.reshard.tensor.Axes;
import org.windlass.reshard.tensor.Casts;
import org.windlass.reshard.tensor.Division;
import org.windlass.reshard.tensor.Rule;
import org.windlass.reshard.tensor.SourceTensor;
import org.windlass.reshard.tensor.TensorMove;

/**
 * Collects warnings about a request that is valid but seldom intended. Each kind of warning is
 * reported once, with some of its tensors.
 */
public final class Doubts {
  private static final int LISTED = 5;

  private final Map<String, Set<String>> tensors = new LinkedHashMap<>();

  /**
   * Tensors for which a rule names a dtype without effect, keyed by the rule's position in the
   * file.
   */
  private final Map<String, List<String>> unchanged = new LinkedHashMap<>();

  /** Positions in the file of rules whose dtype has an effect on other tensors. */
  private final Set<String> casting = new HashSet<>();

  /** Adds a tensor to the warning {@code what}. */
  public void add(String tensor, String what) {
    tensors.computeIfAbsent(what, key -> new LinkedHashSet<>()).add(tensor);
  }

  /** Reports the collected warnings. */
  public void tell(Consumer<String> listener) {
    unchanged.keySet().removeAll(casting);
    unchanged.forEach(
        (where, names) ->
            names.forEach(
                name ->
                    add(name, where + ".dtype: is for floating tensors, and changes none here")));
    tensors.forEach((what, names) -> listener.accept(listed(List.copyOf(names)) + ": " + what));
  }

  /** Returns a text with the first few names and, if there are more, their number. */
  public static String listed(List<String> names) {
    List<String> some = names.subList(0, Math.min(LISTED, names.size()));
    return (names.size() == 1 ? "tensor" : names.size() + " tensors") + " \""
        + String.join("\", \"", some) + "\""
        + (names.size() > LISTED ? " and " + (names.size() - LISTED) + " more" : "");
  }

  /**
   * Adds the warnings about the move of a tensor.
   *
   * @param rule the rule for the tensor
   * @param readsCut whether the source layout cuts the stored tensor
   */
  public void look(TensorMove move, Rule rule, boolean readsCut) {
    boolean isAcross = readsCut && rule.to().isEmpty() && lookAtStrided(move);
    switch (Purpose.of(move.source().name())) {
      case FUSED -> {
        if (!rule.isGiven() && !isAcross) {
          lookAtFused(move, readsCut);
        }
      }
      case PRECISE -> {
        if (rule.dtype().isEmpty()
            && move.target().dtype().bits() < move.source().dtype().bits()) {
          add(
              move.source().name(),
              "such tensors usually keep their dtype, and become " + move.target().dtype()
                  + "; a rule with \"dtype\": \"" + move.source().dtype() + "\" keeps it");
        }
      }
      default -> {}
    }
    lookAtDtype(move.source(), rule);
    if (!rule.isGiven() && move.source().dtype().isInteger() && adds(move.source().from())) {
      add(
          move.source().name(),
          "integers, such as a count of steps, which " + move.source().from()
              + " adds up; a rule that names them says that this is meant, or that \"from\" is R");
    }
    rule.parts()
        .filter(parts -> !parts.isApart())
        .ifPresent(parts -> lookAtParts(move, parts, rule));
  }

  private void lookAtDtype(SourceTensor source, Rule rule) {
    if (rule.dtype().isPresent() && Casts.touch(source.dtype())) {
      casting.add(rule.where());
    } else if (rule.dtype().isPresent()) {
      unchanged.computeIfAbsent(rule.where(), key -> new ArrayList<>()).add(source.name());
    }
  }

  /**
   * Warns if a tensor seems to be fused from several tensors, and the target layout does not keep
   * these parts. It seems so if the source layout is strided along a dimension, and the target cuts
   * the dimension in another way. A strided shard as in FSDP, whose dimension is sharded by a later
   * mesh dimension too, does not count.
   *
   * @return whether it warned
   */
  private boolean lookAtStrided(TensorMove move) {
    Layout from = move.from();
    Layout to = move.target().to();
    Division read = move.source().division();
    int dim = move.axes().stored().indexOf(read.dim());
    if (!read.isPlain() && move.target().division().isPlain() && Division.pieces(to, dim) > 1) {
      add(
          move.source().name(),
          "IN has it as " + read + ", and " + to + " cuts across them; a rule with \"dim\": " + dim
              + ", \"split\": " + read.extents() + " cuts each part");
      return true;
    }
    for (Placement placement : active(from).toList()) {
      if (placement instanceof Placement.StridedShard strided
          && strided.split() > 1
          && plainPieces(from, strided.dim()) % strided.split() != 0
          && active(to)
              .anyMatch(
                  own -> Axes.dimension(own) == strided.dim() && !own.equals(strided))) {
        add(
            move.source().name(),
            move.source().from() + " has it in " + strided.split()
                + " parts, each cut by itself, and " + to
                + " cuts across them; a rule with \"to\": \"" + to.mesh().size() + ":" + strided
                + "\" cuts each part");
        return true;
      }
    }
    return false;
  }

  /** Returns the placements of mesh dimensions with several ranks. */
  private static Stream<Placement> active(Layout layout) {
    return IntStream.range(0, layout.mesh().ndim())
        .filter(m -> layout.mesh().size(m) > 1)
        .mapToObj(layout.placements()::get);
  }

  /** Returns the number of pieces into which the plain shards of a layout cut a dimension. */
  private static long plainPieces(Layout layout, int dim) {
    long pieces = 1;
    for (int m = 0; m < layout.mesh().ndim(); m++) {
      if (layout.placements().get(m) instanceof Placement.Shard shard && shard.dim() == dim) {
        pieces *= layout.mesh().size(m);
      }
    }
    return pieces;
  }

  /** Warns if a rule gives another dtype to scales, because scales keep their dtype. */
  public void lookAtKept(SourceTensor scale, Rule rule) {
    if (rule.dtype().isPresent() && rule.dtype().get() != scale.dtype()) {
      add(
          scale.name(),
          rule.where() + " gives " + rule.dtype().get() + " to scales, which keep their dtype");
    }
  }

  private void lookAtFused(TensorMove move, boolean readsCut) {
    String name = move.source().name();
    int[] fused = fusedDimensions(name, move.source().shape().length);
    Layout from = move.source().from();
    Layout to = move.target().to();
    boolean isRead = readsCut && move.source().division().isPlain() && cuts(from, fused);
    boolean isWritten = move.target().division().isPlain() && cuts(to, fused);
    boolean isSame = isRead && isWritten && move.isCutAlike();
    if ((isRead || isWritten) && !isSame) {
      add(
          name,
          "the name is that of several weights in one tensor, which " + (isWritten ? to : from)
              + " cuts as one: a rank has no piece of each; a rule that names them says that this is meant");
    }
  }

  /** Returns the indices of the dimensions along which a tensor of that name may be fused. */
  private static int[] fusedDimensions(String name, int ndim) {
    if (ndim <= 1) {
      return IntStream.range(0, ndim).toArray();
    }
    // GPT-2 stores its weights transposed. In a stack, the first dimension is that of the experts.
    boolean isTransposed = name.contains("c_attn");
    boolean isStack = name.endsWith("_bias");
    return ndim == 2
        ? new int[] {isTransposed || isStack ? 1 : 0}
        : IntStream.range(1, ndim).toArray();
  }

  private static boolean cuts(Layout layout, int[] dims) {
    return active(layout)
        .anyMatch(
            placement ->
                placement instanceof Placement.Shard shard
                    && IntStream.of(dims).anyMatch(dim -> dim == shard.dim()));
  }

  private static boolean adds(Layout layout) {
    return active(layout).anyMatch(Placement.partial(ReduceOp.SUM)::equals);
  }

  /** Warns if a rank's piece of a part may end inside an attention head. */
  private void lookAtParts(TensorMove move, Rule.Form.Parts parts, Rule rule) {
    int pieces =
        move.target().division().layouts().stream()
            .mapToInt(layout -> Division.pieces(layout, parts.dim()))
            .max()
            .getAsInt();
    if (parts.unit().isEmpty() && parts.groups() == 1 && pieces > 1) {
      add(
          move.source().name(),
          rule.where() + " gives each rank one of " + pieces + " pieces along dimension " + parts.dim()
              + ", which may be half a head; \"unit\" says how many indices belong together, and has it"
              + " checked");
    }
  }
}
