// SPDX-License-Identifier: Apache-2.0
package org.windlass.reshard.tensor;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collections;
import java.util.Comparator;
import java.util.List;
import java.util.function.UnaryOperator;
import java.util.stream.IntStream;
import org.windlass.Tensor;
import org.windlass.error.InvalidArgumentException;
import org.windlass.layout.Layout;
import org.windlass.layout.Placement;

/**
 * Maps the dimensions of a written tensor to those of the stored tensor.
 *
 * @param stored for each written dimension, the index of the stored dimension, or {@link #NEW}
 */
public record Axes(List<Integer> stored) {
  /** Marks a dimension of extent 1 that is not stored. */
  public static final int NEW = -1;

  public Axes {
    stored = List.copyOf(stored);
  }

  /** Returns the axes that a rule gives to a tensor. */
  static Axes of(Rule rule, SourceTensor tensor) {
    int ndim = tensor.shape().length;
    List<Integer> order = new ArrayList<>(IntStream.range(0, ndim).boxed().toList());
    if (rule.transpose() instanceof Rule.Transpose.Order asked) {
      if (asked.order().size() != ndim) {
        throw misfit(rule, tensor, "transpose names " + asked.order().size() + " dimensions");
      }
      order = new ArrayList<>(asked.order());
    } else if (rule.transpose() instanceof Rule.Transpose.LastTwo) {
      if (ndim < 2) {
        throw misfit(rule, tensor, "transpose exchanges the last two");
      }
      Collections.swap(order, ndim - 2, ndim - 1);
    }
    int stack = rule.stack().map(Rule.Form.Stack::dim).orElse(-1);
    if (stack > ndim) {
      throw misfit(rule, tensor, "stack makes dimension " + stack);
    } else if (stack >= 0) {
      order.add(stack, NEW);
    }
    int dim = rule.parts().map(Rule.Form.Parts::dim).orElse(-1);
    if (dim >= ndim) {
      throw misfit(rule, tensor, "dim is " + dim);
    }
    return new Axes(order);
  }

  private static InvalidArgumentException misfit(Rule rule, SourceTensor tensor, String what) {
    return new InvalidArgumentException(
        rule.where() + ": " + what + ", and tensor \"" + tensor.name() + "\" has shape "
            + Arrays.toString(tensor.shape()) + "; add a rule for it before this one");
  }

  /** Returns whether the written dimensions are the stored dimensions in the same order. */
  boolean isIdentity() {
    return !stored.contains(NEW) && keepOrder();
  }

  /** Returns whether the stored dimensions keep their order. */
  public boolean keepOrder() {
    List<Integer> old = stored.stream().filter(d -> d != NEW).toList();
    return old.equals(old.stream().sorted().toList());
  }

  /** Returns the indices of the written dimensions in stored order, innermost first. */
  public List<Integer> order() {
    List<Integer> order = new ArrayList<>(IntStream.range(0, stored.size()).boxed().toList());
    Collections.reverse(order);
    if (!keepOrder()) {
      order.sort(Comparator.comparing(stored::get, Comparator.reverseOrder()));
    }
    return order;
  }

  /** Reorders indices or extents of written dimensions into the order of the stored dimensions. */
  public long[] stored(long[] written) {
    long[] values = new long[(int) stored.stream().filter(d -> d != NEW).count()];
    for (int d = 0; d < written.length; d++) {
      if (stored.get(d) != NEW) {
        values[stored.get(d)] = written[d];
      }
    }
    return values;
  }

  /** Returns the written shape of a tensor with this stored shape. */
  public long[] shape(long[] shape) {
    return stored.stream().mapToLong(d -> d == NEW ? 1 : shape[d]).toArray();
  }

  /** Returns the layout of the written tensor if {@code layout} is that of the stored tensor. */
  Layout layout(Layout layout) {
    return mapped(
        layout,
        placement ->
            placement instanceof Placement.Shard shard
                ? Placement.shard(stored.indexOf(shard.dim()), shard.unit())
                : placement instanceof Placement.StridedShard strided
                    ? Placement.stridedShard(stored.indexOf(strided.dim()), strided.split())
                    : placement);
  }

  static Layout mapped(Layout layout, UnaryOperator<Placement> change) {
    return new Layout(layout.mesh(), layout.placements().stream().map(change).toList());
  }

  /**
   * Returns the index of the dimension that a placement cuts. Returns -1 if it cuts no dimension.
   */
  public static int dimension(Placement placement) {
    if (placement instanceof Placement.Shard shard) {
      return shard.dim();
    }
    return placement instanceof Placement.StridedShard strided ? strided.dim() : -1;
  }

  /**
   * Returns a view of the stored tensor with its dimensions in written order. Additional dimensions
   * at the end stay last.
   */
  public Tensor view(Tensor tensor) {
    List<Integer> order = stored.stream().filter(d -> d != NEW).toList();
    List<Integer> held = new ArrayList<>(order.stream().sorted().toList());
    Tensor view = tensor;
    for (int d = 0; d < order.size(); d++) {
      int other = held.indexOf(order.get(d));
      view = view.transpose(d, other);
      Collections.swap(held, d, other);
    }
    for (int d = 0; d < stored.size(); d++) {
      if (stored.get(d) == NEW) {
        view = inserted(view, d);
      }
    }
    return view;
  }

  private static Tensor inserted(Tensor view, int dim) {
    if (view.ndim() == 0) {
      return view.reshape(1);
    }
    return dim < view.ndim()
        ? view.splitDim(dim, 1, view.shape()[dim])
        : view.splitDim(dim - 1, view.shape()[dim - 1], 1);
  }
}
