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
 * The physical floor of an operation on this machine: median microseconds of just moving its bytes.
 */
public final class Floor {
  private Floor() {}

  /** All-to-all of {@code bytes} from each of {@code ranks} ranks to each. */
  public static double allToAllMicros(int ranks, long bytes, int iterations) {
    return measure(Native.WL_OP_ALL_TO_ALL, ranks, bytes, iterations);
  }

  /** Broadcast of {@code bytes} from one rank to the other {@code ranks - 1}. */
  public static double broadcastMicros(int ranks, long bytes, int iterations) {
    return measure(Native.WL_OP_BROADCAST, ranks, bytes, iterations);
  }

  /** All-gather of {@code bytes} from each of {@code ranks} ranks. */
  public static double allGatherMicros(int ranks, long bytes, int iterations) {
    return measure(Native.WL_OP_ALL_GATHER, ranks, bytes, iterations);
  }

  /** Reduce-scatter of f32 sums, {@code bytes} to each of {@code ranks} ranks. */
  public static double reduceScatterMicros(int ranks, long bytes, int iterations) {
    return measure(Native.WL_OP_REDUCE_SCATTER, ranks, bytes, iterations);
  }

  /** All-reduce of f32 sums, a buffer of {@code bytes} on each of {@code ranks} ranks. */
  public static double allReduceMicros(int ranks, long bytes, int iterations) {
    return measure(Native.WL_OP_ALL_REDUCE, ranks, bytes, iterations);
  }

  /** A contiguous copy of {@code bytes} of source, cast where the dtypes differ. */
  public static double copyMicros(long bytes, DType from, DType to, int iterations) {
    return copiesMicros(bytes, 1, from, to, iterations);
  }

  /**
   * The same in memory of the caller, with a source that is in no cache. It leaves nothing behind
   * that slows what follows: no memory to give back, nor lines that caches have yet to write.
   *
   * @param memory of twice the longer of source and copy, and 128 bytes; its elements are
   *     overwritten
   */
  public static double copyMicros(
      Tensor memory, long bytes, DType from, DType to, int iterations) {
    double micros = copies(memory.address(), memory.bytes(), bytes, 1, from, to, iterations);
    Reference.reachabilityFence(memory);
    return micros;
  }

  /** As many contiguous copies of {@code bytes} of source, cast where the dtypes differ. */
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
   * A dispatch of tokens to experts and a combine of as many rows.
   *
   * @param ids of all ranks, [ranks, tokens, topK]; -1 is none
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
