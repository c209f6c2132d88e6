// SPDX-License-Identifier: Apache-2.0
package org.windlass.layout;

import java.util.Objects;
import org.windlass.ReduceOp;
import org.windlass.error.InvalidArgumentException;

/**
 * A placement: what one dimension of a {@link DeviceMesh} does with a tensor. The string form is
 * that of layout strings: {@code R}, {@code S0}, {@code S0*128}, {@code SS0/2}, {@code P}, {@code
 * P:max}.
 */
public sealed interface Placement
    permits Placement.Shard, Placement.StridedShard, Placement.Replicate, Placement.Partial {

  /**
   * Cuts tensor dimension {@code dim}, as earlier mesh dimensions left it, into one piece a
   * coordinate. Of n elements among k ranks each piece has ceil(n/k), the last shorter or empty;
   * with a unit u, ceil(ceil(n/u)/k) units.
   *
   * @param dim tensor dimension, from 0
   * @param unit elements that stay together, at least 1
   */
  record Shard(int dim, long unit) implements Placement {
    /** Checks the components. */
    public Shard {
      requireDimension(dim);
      if (unit < 1) {
        throw new InvalidArgumentException("a shard's unit is at least 1, not " + unit);
      }
    }

    @Override
    public String toString() {
      return unit == 1 ? "S" + dim : "S" + dim + "*" + unit;
    }
  }

  /**
   * Cuts tensor dimension {@code dim} into {@code split} pieces and each piece among the mesh
   * dimension's ranks; a rank's parts are joined in order. PyTorch's {@code _StridedShard}.
   *
   * @param dim tensor dimension, from 0
   * @param split pieces, at least 1
   */
  record StridedShard(int dim, int split) implements Placement {
    /** Checks the components. */
    public StridedShard {
      requireDimension(dim);
      if (split < 1) {
        throw new InvalidArgumentException("a strided shard's split is at least 1, not " + split);
      }
    }

    @Override
    public String toString() {
      return "SS" + dim + "/" + split;
    }
  }

  /** Every coordinate holds the same. */
  record Replicate() implements Placement {
    @Override
    public String toString() {
      return "R";
    }
  }

  /**
   * Every coordinate holds a term; the tensor is their reduction. Stands in sources only.
   *
   * @param op how the terms become one
   */
  record Partial(ReduceOp op) implements Placement {
    /** Checks the components. */
    public Partial {
      Objects.requireNonNull(op, "op");
    }

    @Override
    public String toString() {
      return op == ReduceOp.SUM ? "P" : "P:" + op;
    }
  }

  /** Cuts tensor dimension {@code dim} in whole elements. */
  static Placement shard(int dim) {
    return new Shard(dim, 1);
  }

  /** Cuts tensor dimension {@code dim} in whole units of {@code unit} elements. */
  static Placement shard(int dim, long unit) {
    return new Shard(dim, unit);
  }

  /** Cuts tensor dimension {@code dim} into {@code split} pieces, and each among the ranks. */
  static Placement stridedShard(int dim, int split) {
    return new StridedShard(dim, split);
  }

  /** Every coordinate holds the same. */
  static Placement replicate() {
    return new Replicate();
  }

  /** Every coordinate holds a term of a sum. */
  static Placement partial() {
    return new Partial(ReduceOp.SUM);
  }

  /** Every coordinate holds a term of the reduction by {@code op}. */
  static Placement partial(ReduceOp op) {
    return new Partial(op);
  }

  private static void requireDimension(int dim) {
    if (dim < 0) {
      throw new InvalidArgumentException("a tensor dimension counts from 0, not " + dim);
    }
  }
}
