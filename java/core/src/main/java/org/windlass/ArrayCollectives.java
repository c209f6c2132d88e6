// SPDX-License-Identifier: Apache-2.0
package org.windlass;

import java.lang.reflect.Array;
import java.util.Arrays;
import java.util.Objects;
import java.util.function.BiConsumer;
import java.util.function.Consumer;
import org.jspecify.annotations.Nullable;
import org.windlass.error.InvalidArgumentException;
import org.windlass.error.MismatchException;
import org.windlass.internal.call.Endpoint;

/**
 * The collectives of Java arrays among {@link Collectives}. They are a convenience for small data.
 * Each call copies the array once to native memory, runs the operation of the same name on tensors,
 * and copies the result once to an array. The dtype of {@code float[]} is f32, of {@code double[]}
 * f64, of {@code int[]} i32 and of {@code long[]} i64.
 *
 * <p>All ranks must pass arrays of the same type and length; otherwise they get a {@link
 * MismatchException}. Only in the {@code byte[]} forms, the lengths may differ between ranks, up to
 * {@link #MOST_BYTES}. These forms exchange the lengths first, so they may take up to twice the
 * deadline.
 */
public abstract sealed class ArrayCollectives extends Reductions permits Collectives {
  /**
   * Largest number of bytes that a rank may pass to {@link #broadcast(byte[], int)}, for example.
   */
  public static final int MOST_BYTES = 1 << 26;

  ArrayCollectives(Endpoint endpoint, long deadlineNs, @Nullable Object owner) {
    super(endpoint, deadlineNs, owner);
  }

  /** Replaces {@code values} on every rank with their reduction over all ranks. */
  public final void allReduce(float[] values, ReduceOp op) {
    inPlace(values, t -> tensors().allReduce(t, op));
  }

  /** Runs {@link #allReduce(float[], ReduceOp)} on f64. */
  public final void allReduce(double[] values, ReduceOp op) {
    inPlace(values, t -> tensors().allReduce(t, op));
  }

  /** Runs {@link #allReduce(float[], ReduceOp)} on i32. */
  public final void allReduce(int[] values, ReduceOp op) {
    inPlace(values, t -> tensors().allReduce(t, op));
  }

  /** Runs {@link #allReduce(float[], ReduceOp)} on i64. */
  public final void allReduce(long[] values, ReduceOp op) {
    inPlace(values, t -> tensors().allReduce(t, op));
  }

  /** Copies {@code values} of rank {@code root} to {@code values} of every rank. */
  public final void broadcast(float[] values, int root) {
    inPlace(values, t -> tensors().broadcast(t, root));
  }

  /** Runs {@link #broadcast(float[], int)} on f64. */
  public final void broadcast(double[] values, int root) {
    inPlace(values, t -> tensors().broadcast(t, root));
  }

  /** Runs {@link #broadcast(float[], int)} on i32. */
  public final void broadcast(int[] values, int root) {
    inPlace(values, t -> tensors().broadcast(t, root));
  }

  /** Runs {@link #broadcast(float[], int)} on i64. */
  public final void broadcast(long[] values, int root) {
    inPlace(values, t -> tensors().broadcast(t, root));
  }

  /** Returns {@code values} of all ranks, one after the other, in rank order. */
  public final float[] allGather(float[] values) {
    return apart(values, timesSize(values), tensors()::allGather);
  }

  /** Runs {@link #allGather(float[])} on f64. */
  public final double[] allGather(double[] values) {
    return apart(values, timesSize(values), tensors()::allGather);
  }

  /** Runs {@link #allGather(float[])} on i32. */
  public final int[] allGather(int[] values) {
    return apart(values, timesSize(values), tensors()::allGather);
  }

  /** Runs {@link #allGather(float[])} on i64. */
  public final long[] allGather(long[] values) {
    return apart(values, timesSize(values), tensors()::allGather);
  }

  /**
   * Returns this rank's part of the reduction of {@code values} over all ranks.
   *
   * @param values the array to reduce. Its length is a multiple of {@link Collectives#size()}; part
   *     {@code r} of the result is for rank {@code r}
   */
  public final float[] reduceScatter(float[] values, ReduceOp op) {
    return scattered(values, op);
  }

  /** Runs {@link #reduceScatter(float[], ReduceOp)} on f64. */
  public final double[] reduceScatter(double[] values, ReduceOp op) {
    return scattered(values, op);
  }

  /** Runs {@link #reduceScatter(float[], ReduceOp)} on i32. */
  public final int[] reduceScatter(int[] values, ReduceOp op) {
    return scattered(values, op);
  }

  /** Runs {@link #reduceScatter(float[], ReduceOp)} on i64. */
  public final long[] reduceScatter(long[] values, ReduceOp op) {
    return scattered(values, op);
  }

  /**
   * Sends part {@code r} of {@code values} to rank {@code r}. Returns the parts that this rank
   * receives, in rank order.
   *
   * @param values the array to send, whose length is a multiple of {@link Collectives#size()}
   */
  public final float[] allToAll(float[] values) {
    return apart(values, ArrayCopy.length(values), tensors()::allToAll);
  }

  /** Runs {@link #allToAll(float[])} on f64. */
  public final double[] allToAll(double[] values) {
    return apart(values, ArrayCopy.length(values), tensors()::allToAll);
  }

  /** Runs {@link #allToAll(float[])} on i32. */
  public final int[] allToAll(int[] values) {
    return apart(values, ArrayCopy.length(values), tensors()::allToAll);
  }

  /** Runs {@link #allToAll(float[])} on i64. */
  public final long[] allToAll(long[] values) {
    return apart(values, ArrayCopy.length(values), tensors()::allToAll);
  }

  /**
   * Returns a copy of {@code value} of rank {@code root} on every rank: {@code
   * comm.broadcast(comm.rank() == 0 ? Files.readAllBytes(path) : null, 0)}.
   *
   * @param value of any length up to {@link #MOST_BYTES}; used only on the root, and may be null on
   *     other ranks
   * @throws InvalidArgumentException on the root if {@code value} is too long; nothing was sent
   */
  public final byte[] broadcast(byte @Nullable [] value, int root) {
    byte[] own = rank() == root ? checked("broadcast", value) : new byte[0];
    return tensors().inOrder(
        () -> {
          long[] length = {own.length};
          broadcast(length, root);
          byte[] received = new byte[agreed(root, length[0])];
          try (Tensor tensor = Tensor.allocate(DType.U8, received.length)) {
            if (rank() == root) {
              tensor.copyFrom(own);
            }
            tensors().broadcast(tensor, root);
            tensor.copyTo(received);
          }
          return received;
        });
  }

  /**
   * Returns {@code value} of every rank: element {@code r} is that of rank {@code r}.
   *
   * @param value of any length up to {@link #MOST_BYTES}, which may differ between ranks
   * @throws InvalidArgumentException on a rank whose {@code value} is too long; nothing was sent
   */
  public final byte[][] allGather(byte[] value) {
    byte[] own = checked("allGather", value);
    return tensors().inOrder(
        () -> {
          long[] counts = allGather(new long[] {own.length});
          byte[][] values = new byte[counts.length][];
          for (int rank = 0; rank < counts.length; rank++) {
            values[rank] = new byte[agreed(rank, counts[rank])];
          }
          try (Tensor in = Tensor.allocate(DType.U8, own.length).copyFrom(own);
              Tensor out = Tensor.allocate(DType.U8, Arrays.stream(counts).sum())) {
            tensors().allGatherv(in, out, counts);
            long start = 0;
            for (byte[] each : values) {
              out.narrow(0, start, each.length).copyTo(each);
              start += each.length;
            }
          }
          return values;
        });
  }

  private Collectives tensors() {
    return (Collectives) this;
  }

  private static byte[] checked(String what, byte @Nullable [] value) {
    Objects.requireNonNull(value, "value");
    if (value.length > MOST_BYTES) {
      throw new InvalidArgumentException(
          what + ": value has " + value.length + " bytes, but the limit is " + MOST_BYTES
              + "; use a tensor of u8");
    }
    return value;
  }

  /**
   * Returns the length that a rank has sent. Checks it, since another version of Windlass may have
   * another limit.
   */
  private static int agreed(int rank, long length) {
    if (length < 0 || length > MOST_BYTES) {
      throw new InvalidArgumentException(
          "rank " + rank + " has " + length + " bytes, but the limit is " + MOST_BYTES
              + "; call one operation on all ranks, with one version of Windlass");
    }
    return (int) length;
  }

  private int timesSize(Object values) {
    long length = (long) ArrayCopy.length(values) * size();
    if (length > Integer.MAX_VALUE - 8) {
      throw new InvalidArgumentException(
          "allGather: values has " + length / size() + " elements, and those of " + size()
              + " ranks don't fit a Java array; use tensors");
    }
    return (int) length;
  }

  private <A> A scattered(A values, ReduceOp op) {
    int length = ArrayCopy.length(values) / size();
    return apart(values, length, (in, out) -> tensors().reduceScatter(in, out, op));
  }

  private static Tensor allocate(Object values) {
    return Tensor.allocate(ArrayCopy.dtype(values), ArrayCopy.length(values));
  }

  private static void inPlace(Object values, Consumer<Tensor> run) {
    Objects.requireNonNull(values, "values");
    try (Tensor tensor = allocate(values)) {
      run.accept(ArrayCopy.from(tensor, values));
      ArrayCopy.to(tensor, values);
    }
  }

  /**
   * Returns an array of {@code length} elements with the output of {@code run} for {@code values}.
   */
  @SuppressWarnings("unchecked") // made of the class of values
  private static <A> A apart(A values, int length, BiConsumer<Tensor, Tensor> run) {
    A result = (A) Array.newInstance(values.getClass().getComponentType(), length);
    try (Tensor in = allocate(values);
        Tensor out = allocate(result)) {
      run.accept(ArrayCopy.from(in, values), out);
      ArrayCopy.to(out, result);
    }
    return result;
  }
}
