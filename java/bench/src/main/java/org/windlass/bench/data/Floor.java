// SPDX-License-Identifier: Apache-2.0
package org.windlass.bench.data;

import java.lang.ref.Reference;
import java.nio.ByteBuffer;
import java.util.function.ToIntBiFunction;
import org.windlass.DType;
import org.windlass.Tensor;
import org.windlass.internal.Native;
import org.windlass.internal.NativeMemory;
import org.windlass.internal.Natives;
import org.windlass.internal.Structs;

/**
 * Measures the physical floor of an operation on this machine, which is a lower bound of its time:
 * the median time, in microseconds, of code that only moves its bytes.
 */
public final class Floor {
  private Floor() {}

  /**
   * Measures a collective. Reductions add f32 elements.
   *
   * @param operation code of the operation in the C ABI
   * @param bytes size as {@code windlass bench} counts it
   */
  public static double operationMicros(int operation, int ranks, long bytes, int iterations) {
    ByteBuffer config = Structs.allocate(Structs.FloorConfig.SIZE);
    config.putInt(0, Structs.FloorConfig.SIZE);
    config.putInt(Structs.FloorConfig.OPERATION, operation);
    config.putInt(Structs.FloorConfig.RANKS, ranks);
    config.putInt(Structs.FloorConfig.ITERATIONS, iterations);
    config.putLong(Structs.FloorConfig.BYTES, bytes);
    return median(
        (median, error) -> Native.wl_floor_measure(NativeMemory.address(config), median, error));
  }

  /** Measures a contiguous copy of {@code bytes} source bytes, with a cast if the dtypes differ. */
  public static double copyMicros(long bytes, DType from, DType to, int iterations) {
    return copiesMicros(bytes, 1, from, to, iterations);
  }

  /**
   * Measures a contiguous copy in the caller's memory, with a source that is in no cache. It does
   * not slow down later code: there is no memory to free, and caches hold no dirty lines.
   *
   * @param memory memory of 128 bytes plus twice the longer of source and copy; its contents are
   *     overwritten
   * @param bytes bytes of the source
   */
  public static double copyMicros(
      Tensor memory, long bytes, DType from, DType to, int iterations) {
    double micros = copies(memory.address(), memory.bytes(), bytes, 1, from, to, iterations);
    Reference.reachabilityFence(memory);
    return micros;
  }

  /**
   * Measures {@code copies} contiguous copies of one source, with a cast if the dtypes differ.
   *
   * @param bytes bytes of the source
   */
  public static double copiesMicros(long bytes, int copies, DType from, DType to, int iterations) {
    return copies(0, 0, bytes, copies, from, to, iterations);
  }

  private static double copies(
      long memory, long memoryBytes, long bytes, int copies, DType from, DType to, int iterations) {
    return median(
        (median, error) ->
            Native.wl_floor_copy(
                memory,
                memoryBytes,
                bytes,
                copies,
                from.code(),
                to.code(),
                iterations,
                median,
                error));
  }

  /**
   * Measures a dispatch of tokens to experts, and a combine of the experts' results.
   *
   * @param ids experts of all ranks' tokens, of shape [ranks, tokens, topK]; -1 for none
   */
  public static double expertsMicros(ExpertTraffic of, int[] ids, int iterations) {
    ByteBuffer experts =
        Structs.experts(
            of.dtype().code(),
            of.ranks(),
            of.experts(),
            of.topK(),
            of.hidden(),
            of.tokens(),
            Integer.MAX_VALUE);
    ByteBuffer list = NativeMemory.copy(ids);
    double micros =
        median(
            (median, error) ->
                Native.wl_floor_experts(
                    NativeMemory.address(experts),
                    NativeMemory.address(list),
                    iterations,
                    median,
                    error));
    Reference.reachabilityFence(experts);
    Reference.reachabilityFence(list);
    return micros;
  }

  private static double median(ToIntBiFunction<double[], Long> call) {
    double[] median = new double[1];
    Natives.call((out, error) -> call.applyAsInt(median, error));
    return median[0];
  }
}
