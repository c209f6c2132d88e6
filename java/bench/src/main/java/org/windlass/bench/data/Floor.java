// SPDX-License-Identifier: Apache-2.0
package org.windlass.bench.data;

import java.lang.ref.Reference;
import java.nio.ByteBuffer;
import org.windlass.DType;
import org.windlass.Tensor;
import org.windlass.internal.Failures;
import org.windlass.internal.Native;
import org.windlass.internal.NativeMemory;
import org.windlass.internal.Scratch;
import org.windlass.internal.Structs;

/**
 * Measures the physical floor of an operation on this machine: the median time to only move its
 * bytes, in microseconds.
 */
public final class Floor {
  private Floor() {}

  /** Measures an all-to-all with {@code bytes} from each of {@code ranks} ranks to each rank. */
  public static double allToAllMicros(int ranks, long bytes, int iterations) {
    return measure(Native.WL_OP_ALL_TO_ALL, ranks, bytes, iterations);
  }

  /** Measures a broadcast of {@code bytes} from one rank to the other {@code ranks - 1}. */
  public static double broadcastMicros(int ranks, long bytes, int iterations) {
    return measure(Native.WL_OP_BROADCAST, ranks, bytes, iterations);
  }

  /** Measures an all-gather of {@code bytes} from each of {@code ranks} ranks. */
  public static double allGatherMicros(int ranks, long bytes, int iterations) {
    return measure(Native.WL_OP_ALL_GATHER, ranks, bytes, iterations);
  }

  /** Measures a reduce-scatter of f32 sums with {@code bytes} to each of {@code ranks} ranks. */
  public static double reduceScatterMicros(int ranks, long bytes, int iterations) {
    return measure(Native.WL_OP_REDUCE_SCATTER, ranks, bytes, iterations);
  }

  /**
   * Measures an all-reduce of f32 sums with a buffer of {@code bytes} on each of {@code ranks}
   * ranks.
   */
  public static double allReduceMicros(int ranks, long bytes, int iterations) {
    return measure(Native.WL_OP_ALL_REDUCE, ranks, bytes, iterations);
  }

  /** Measures a contiguous copy of {@code bytes} of source, with a cast if the dtypes differ. */
  public static double copyMicros(long bytes, DType from, DType to, int iterations) {
    return copiesMicros(bytes, 1, from, to, iterations);
  }

  /**
   * Measures a contiguous copy in the caller's memory, with a source that is in no cache. It does
   * not slow down later code: there is no memory to free, and caches hold no dirty lines.
   *
   * @param memory twice the longer of source and copy, plus 128 bytes; its contents are overwritten
   */
  public static double copyMicros(
      Tensor memory, long bytes, DType from, DType to, int iterations) {
    double micros = copies(memory.address(), memory.bytes(), bytes, 1, from, to, iterations);
    Reference.reachabilityFence(memory);
    return micros;
  }

  /**
   * Measures {@code copies} contiguous copies of {@code bytes} of source, with a cast if the dtypes
   * differ.
   */
  public static double copiesMicros(long bytes, int copies, DType from, DType to, int iterations) {
    return copies(0, 0, bytes, copies, from, to, iterations);
  }

  private static double copies(
      long memory, long memoryBytes, long bytes, int copies, DType from, DType to, int iterations) {
    double[] median = new double[1];
    try (Scratch scratch = Scratch.take()) {
      int code =
          Native.wl_floor_copy(
              memory,
              memoryBytes,
              bytes,
              copies,
              from.code(),
              to.code(),
              iterations,
              median,
              scratch.error());
      Failures.check(code, scratch);
    }
    return median[0];
  }

  /**
   * Measures a dispatch of tokens to experts and a combine of equally many rows.
   *
   * @param ids experts of all ranks' tokens, of shape [ranks, tokens, topK]; -1 for none
   */
  public static double expertsMicros(ExpertTraffic of, int[] ids, int iterations) {
    double[] median = new double[1];
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
    try (Scratch scratch = Scratch.take()) {
      int code =
          Native.wl_floor_experts(
              NativeMemory.address(experts),
              NativeMemory.address(list),
              iterations,
              median,
              scratch.error());
      Failures.check(code, scratch);
    }
    Reference.reachabilityFence(experts);
    Reference.reachabilityFence(list);
    return median[0];
  }

  private static double measure(int operation, int ranks, long bytes, int iterations) {
    double[] median = new double[1];
    try (Scratch scratch = Scratch.take()) {
      long config = scratch.config(Structs.FloorConfig.SIZE);
      scratch.configInt(Structs.FloorConfig.OPERATION, operation);
      scratch.configInt(Structs.FloorConfig.RANKS, ranks);
      scratch.configInt(Structs.FloorConfig.ITERATIONS, iterations);
      scratch.configLong(Structs.FloorConfig.BYTES, bytes);
      int code = Native.wl_floor_measure(config, median, scratch.error());
      Failures.check(code, scratch);
    }
    return median[0];
  }
}
