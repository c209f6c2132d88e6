// SPDX-License-Identifier: Apache-2.0
package org.windlass.layout;

import java.util.Objects;
import org.windlass.ReduceOp;
import org.windlass.error.InvalidArgumentException;

/**
 * The effect of one dimension of a {@link DeviceMesh} on a tensor. As a string, it is {@code R},
 * {@code S0}, {@code S0*128}, {@code SS0/2}, {@code P} or {@code P:max}, for example.
 */
public sealed interface Placement
    permits Placement.Shard, Placement.StridedShard, Placement.Replicate, Placement.Partial {

  /**
   * Cuts tensor dimension {@code dim}, after the cuts of earlier mesh dimensions, into one piece
   * for each coordinate. With n elements and k ranks, each piece has ceil(n/k) elements; the last
   * pieces may be shorter or empty. With a unit u, each piece has ceil(ceil(n/u)/k) units.
   *
   * @param dim tensor dimension, from 0
   * @param unit number of elements that stay together, at least 1
   */
  record Shard(int dim, long unit) implements Placement {
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
   * Cuts tensor dimension {@code dim} after later mesh dimensions, as FSDP2 over tensor parallelism
   * does. If a later mesh dimension with {@code S<dim>} has size {@code split}, that mesh dimension
   * cuts first. This placement then cuts each of the resulting pieces. Both cut as {@link Shard}
   * does. The same holds for several later mesh dimensions if the product of their sizes is {@code
   * split}. This placement corresponds to PyTorch's {@code _StridedShard}.
   *
   * <p>Without such mesh dimensions, it cuts the dimension into {@code split} pieces, and each
   * piece among the mesh dimension's ranks. The local tensor of a rank is its parts one after the
   * other. All parts must be equal, and so must the parts of earlier cuts.
   *
   * @param dim tensor dimension, from 0
   * @param split number of pieces, at least 1
   */
  record StridedShard(int dim, int split) implements Placement {
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

  /** Every coordinate of the mesh dimension holds the same data. */
  record Replicate() implements Placement {
    @Override
    public String toString() {
      return "R";
    }
  }

  /**
   * Every coordinate of the mesh dimension holds a term of a reduction, such as a summand. The
   * tensor is the reduction of the terms. Only sources of a transfer may have this placement.
   *
   * @param op the reduction
   */
  record Partial(ReduceOp op) implements Placement {
    public Partial {
      Objects.requireNonNull(op, "op");
    }

    @Override
    public String toString() {
      return op == ReduceOp.SUM ? "P" : "P:" + op;
    }
  }

  /** Returns a {@link Shard} of tensor dimension {@code dim} that cuts between any two elements. */
  static Placement shard(int dim) {
    return new Shard(dim, 1);
  }

  /** Returns a {@link Shard} of tensor dimension {@code dim} in units of {@code unit} elements. */
  static Placement shard(int dim, long unit) {
    return new Shard(dim, unit);
  }

  /** Returns a {@link StridedShard} of tensor dimension {@code dim}. */
  static Placement stridedShard(int dim, int split) {
    return new StridedShard(dim, split);
  }

  /** Returns the placement with the same data at every coordinate. */
  static Placement replicate() {
    return new Replicate();
  }

  /** Returns the placement with a summand at every coordinate. The tensor is their sum. */
  static Placement partial() {
    return new Partial(ReduceOp.SUM);
  }

  /** Returns the placement with a term at every coordinate, which {@code op} reduces. */
  static Placement partial(ReduceOp op) {
    return new Partial(op);
  }

  private static void requireDimension(int dim) {
    if (dim < 0) {
      throw new InvalidArgumentException("a tensor dimension counts from 0, not " + dim);
    }
  }
}
