// SPDX-License-Identifier: Apache-2.0
package org.windlass.cli.plan;

import java.util.BitSet;
import java.util.List;
import java.util.Optional;
import java.util.stream.IntStream;
import org.windlass.DType;
import org.windlass.checkpoint.TensorList;
import org.windlass.error.InvalidArgumentException;
import org.windlass.error.UnsupportedException;
import org.windlass.layout.Layout;
import org.windlass.layout.TensorSpec;
import org.windlass.plan.Plan;
import org.windlass.plan.PlanOptions;

/**
 * A tensor to plan.
 *
 * @param dtype dtype at both ends
 * @param wire dtype of the values while they move between ranks
 * @param count number of such tensors
 */
public record PlannedTensor(
    String name, long[] shape, DType dtype, DType wire, Layout from, Layout to, int count) {

  /**
   * Returns the tensor of an entry of a list. If a default layout shards a dimension that the
   * tensor lacks, its placement acts as R. A layout of the entry itself must fit the tensor.
   *
   * @param defaultFrom the source layout if the entry has none
   * @param defaultTo the target layout if the entry has none
   * @param wire the dtype in which the tensor crosses ranks
   */
  public static PlannedTensor of(
      TensorList.Entry entry,
      Optional<String> defaultFrom,
      Optional<String> defaultTo,
      DType wire) {
    Layout source = Layout.parse(layout(entry, "from", entry.from(), defaultFrom));
    Layout target = Layout.parseTarget(layout(entry, "to", entry.to(), defaultTo), source);
    long[] shape = entry.shape().stream().mapToLong(Long::longValue).toArray();
    entry.from().ifPresent(text -> requireFit(entry.name(), "from " + text, source, shape));
    entry.to().ifPresent(text -> requireFit(entry.name(), "to " + text, target, shape));
    return new PlannedTensor(
        entry.name(),
        shape,
        entry.dtype(),
        wire,
        entry.from().isPresent() ? source : source.defaultedFor(shape.length),
        entry.to().isPresent() ? target : target.defaultedFor(shape.length),
        entry.count());
  }

  /**
   * Throws InvalidArgumentException unless a layout fits a tensor.
   *
   * @param given the layout as the user wrote it, for messages
   */
  public static void requireFit(String name, String given, Layout layout, long... shape) {
    try {
      layout.check(name, shape);
    } catch (InvalidArgumentException misfit) {
      String shown = misfit.getMessage().replace(" in " + layout + " ", " in " + given + " ");
      throw new InvalidArgumentException(shown, misfit);
    }
  }

  private static String layout(
      TensorList.Entry entry, String which, Optional<String> own, Optional<String> other) {
    return own.or(() -> other)
        .orElseThrow(
            () ->
                new InvalidArgumentException(
                    "tensor '" + entry.name() + "': has no " + which + ", and --" + which
                        + " is missing"));
  }

  void addRanks(BitSet ranks) {
    from.mesh().ranks().forEach(ranks::set);
    to.mesh().ranks().forEach(ranks::set);
  }

  /**
   * Returns the plans of all {@code count} tensors.
   *
   * @param turn number of tensors planned before; it selects the replica that sends
   */
  List<Plan> plans(PlanOptions options, int turn) {
    TensorSpec source = TensorSpec.of(name, dtype, from, shape);
    TensorSpec target = TensorSpec.of(name, dtype, to, shape);
    try {
      return IntStream.range(turn, turn + count)
          .mapToObj(at -> Plan.of(source, target, wire, options.withTurn(at)))
          .toList();
    } catch (InvalidArgumentException refused) {
      throw new InvalidArgumentException("tensor '" + name + "': " + refused.getMessage(), refused);
    } catch (UnsupportedException refused) {
      throw new UnsupportedException("tensor '" + name + "': " + refused.getMessage(), refused);
    }
  }
}
