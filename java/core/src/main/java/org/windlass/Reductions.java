// SPDX-License-Identifier: Apache-2.0
package org.windlass;

import java.util.Objects;
import org.jspecify.annotations.Nullable;
import org.windlass.error.InvalidArgumentException;
import org.windlass.error.UnsupportedException;
import org.windlass.internal.Native;
import org.windlass.internal.call.Endpoint;

/**
 * The reductions of tensors among {@link Collectives}, which documents what they have in common.
 *
 * <p>A method that takes a {@code factor} instead of a {@link ReduceOp} computes a premultiplied
 * sum: it multiplies {@code in} of each rank by that rank's {@code factor}, then adds. Ranks may
 * have different factors. If all ranks pass {@code 1.0 / size()}, the result is an average. For f64
 * tensors, the factor, the products and the sums are f64; for other tensors they are f32. The
 * factor, each product and each sum are rounded to that type. The result is then rounded once to
 * the tensor's dtype. Only floating dtypes have factors.
 */
public abstract sealed class Reductions extends PointToPoint permits ArrayCollectives {
  Reductions(Endpoint endpoint, long deadlineNs, @Nullable Object owner) {
    super(endpoint, deadlineNs, owner);
  }

  /**
   * Reduces {@code in} of all ranks and writes part {@code r} of the result to {@code out} of rank
   * {@code r}. The number of elements of {@code in} is {@link Collectives#size()} times that of
   * {@code out}. To reduce in place, pass this rank's own part of {@code in} as {@code out}.
   */
  public final void reduceScatter(Tensor in, Tensor out, ReduceOp op) {
    reduce(Native.WL_OP_REDUCE_SCATTER, in, out, code(op), 0, 0, Algorithm.AUTO);
  }

  /** Runs {@link #reduceScatter(Tensor, Tensor, ReduceOp)} as a premultiplied sum. */
  public final void reduceScatter(Tensor in, Tensor out, double factor) {
    reduce(Native.WL_OP_REDUCE_SCATTER, in, out, PREMULTIPLIED, factor, 0, Algorithm.AUTO);
  }

  /**
   * Reduces {@code in} of all ranks, cuts the result along dimension {@code dim} into equal parts,
   * and writes part {@code r} to {@code out} of rank {@code r}. It is the inverse of {@link
   * Collectives#allGather(Tensor, Tensor, int)}: {@code comm.reduceScatter(in, out, ReduceOp.SUM,
   * 1)} gives each rank some columns of the sum. Dimension 0 is the same as {@link
   * #reduceScatter(Tensor, Tensor, ReduceOp)}.
   *
   * @param in the shape of {@code out}, except that {@code dim} is {@link Collectives#size()} times
   *     as long
   * @param out the same shape on every rank; not in place unless {@code dim} is 0
   * @throws InvalidArgumentException if the shapes do not match
   */
  public final void reduceScatter(Tensor in, Tensor out, ReduceOp op, int dim) {
    long rows = Arguments.rowsAlong("reduceScatter", "out", out, "in", in, dim);
    int operation = dim == 0 ? Native.WL_OP_REDUCE_SCATTER : Native.WL_OP_REDUCE_SCATTER_DIM;
    reduce(operation, in, out, code(op), 0, rows, Algorithm.AUTO);
  }

  /** Replaces {@code tensor} on every rank with its reduction over all ranks. */
  public final void allReduce(Tensor tensor, ReduceOp op) {
    Arguments.inPlace(Native.WL_OP_ALL_REDUCE, tensor);
    allReduce(tensor, tensor, op, Algorithm.AUTO);
  }

  /**
   * Writes the reduction of {@code in} over all ranks to {@code out} of every rank. To reduce in
   * place, pass the same tensor twice.
   */
  public final void allReduce(Tensor in, Tensor out, ReduceOp op) {
    allReduce(in, out, op, Algorithm.AUTO);
  }

  /**
   * Runs {@link #allReduce(Tensor, Tensor, ReduceOp)} with a given algorithm. {@link
   * Algorithm#RING} and {@link Algorithm#BIDIRECTIONAL_RING} add in ring order and round at each
   * rank. In place, {@link Algorithm#ONE_PHASE} supports only small tensors.
   *
   * @throws InvalidArgumentException for an algorithm of another operation
   */
  public final void allReduce(Tensor in, Tensor out, ReduceOp op, Algorithm algorithm) {
    reduce(Native.WL_OP_ALL_REDUCE, in, out, code(op), 0, 0, algorithm);
  }

  /**
   * Runs {@link #allReduce(Tensor, Tensor, ReduceOp)} as a premultiplied sum: {@code
   * comm.allReduce(gradients, gradients, 1.0 / tokens)}.
   */
  public final void allReduce(Tensor in, Tensor out, double factor) {
    reduce(Native.WL_OP_ALL_REDUCE, in, out, PREMULTIPLIED, factor, 0, Algorithm.AUTO);
  }

  /**
   * Writes the reduction of {@code in} of ranks 0 to {@code r} to {@code out} of rank {@code r}:
   * {@code comm.scan(counts, ends, ReduceOp.SUM)}.
   *
   * @param out as many elements as {@code in}; not in place
   * @throws UnsupportedException if {@code op} is {@link ReduceOp#AVG}
   */
  public final void scan(Tensor in, Tensor out, ReduceOp op) {
    reduce(Native.WL_OP_SCAN, in, out, code(op), 0, 0, Algorithm.AUTO);
  }

  /** Runs {@link #scan(Tensor, Tensor, ReduceOp)} as a premultiplied sum. */
  public final void scan(Tensor in, Tensor out, double factor) {
    reduce(Native.WL_OP_SCAN, in, out, PREMULTIPLIED, factor, 0, Algorithm.AUTO);
  }

  /**
   * Writes the reduction of {@code in} of ranks 0 to {@code r - 1} to {@code out} of rank {@code
   * r}: {@code comm.exclusiveScan(counts, starts, ReduceOp.SUM)}.
   *
   * <p>On rank 0, each element is the identity of {@code op}: 0 for {@link ReduceOp#SUM}, {@link
   * ReduceOp#OR} and {@link ReduceOp#XOR}, 1 for {@link ReduceOp#PRODUCT}, all bits set for {@link
   * ReduceOp#AND}. For {@link ReduceOp#MAX} and {@link ReduceOp#MIN}, it is the smallest and the
   * largest value of the dtype, which are the infinities if the dtype has them.
   *
   * @param out as many elements as {@code in}; not in place
   * @throws UnsupportedException if {@code op} is {@link ReduceOp#AVG}
   */
  public final void exclusiveScan(Tensor in, Tensor out, ReduceOp op) {
    reduce(Native.WL_OP_EXCLUSIVE_SCAN, in, out, code(op), 0, 0, Algorithm.AUTO);
  }

  /** Runs {@link #exclusiveScan(Tensor, Tensor, ReduceOp)} as a premultiplied sum. */
  public final void exclusiveScan(Tensor in, Tensor out, double factor) {
    reduce(Native.WL_OP_EXCLUSIVE_SCAN, in, out, PREMULTIPLIED, factor, 0, Algorithm.AUTO);
  }

  /**
   * Writes the reduction of {@code in} over all ranks to {@code out} on {@code root}.
   *
   * @param out written only on the root; may be null on other ranks. To reduce in place, pass
   *     {@code in}
   */
  public final void reduce(Tensor in, @Nullable Tensor out, ReduceOp op, int root) {
    reduce(in, out, code(op), 0, root);
  }

  /** Runs {@link #reduce(Tensor, Tensor, ReduceOp, int)} as a premultiplied sum. */
  public final void reduce(Tensor in, @Nullable Tensor out, double factor, int root) {
    reduce(in, out, PREMULTIPLIED, factor, root);
  }

  static final int PREMULTIPLIED = Native.WL_PREMULTIPLIED_SUM;

  /**
   * Runs an operation whose parts have equal lengths. A tensor is null if the operation does not
   * use it on this rank.
   */
  abstract void run(
      int operation,
      @Nullable Tensor in,
      @Nullable Tensor out,
      int op,
      double factor,
      int root,
      long rows,
      int algorithm);

  private void reduce(Tensor in, @Nullable Tensor out, int op, double factor, int root) {
    Tensor to = rank() == root ? given(out, "out") : null;
    run(Native.WL_OP_REDUCE, given(in, "in"), to, op, factor, root, 0, 0);
  }

  private void reduce(
      int operation, Tensor in, Tensor out, int op, double factor, long rows, Algorithm algorithm) {
    int code = Objects.requireNonNull(algorithm, "algorithm").code();
    run(operation, given(in, "in"), given(out, "out"), op, factor, 0, rows, code);
  }

  static Tensor given(@Nullable Tensor tensor, String name) {
    return Objects.requireNonNull(tensor, name);
  }

  static int code(ReduceOp op) {
    return Objects.requireNonNull(op, "op").code();
  }
}
