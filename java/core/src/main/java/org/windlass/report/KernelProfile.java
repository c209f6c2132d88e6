// SPDX-License-Identifier: Apache-2.0
package org.windlass.report;

import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.EnumMap;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.stream.IntStream;
import org.windlass.error.UnsupportedException;
import org.windlass.internal.Copies;
import org.windlass.internal.Native;
import org.windlass.internal.NativeMemory;
import org.windlass.internal.Natives;
import org.windlass.internal.Structs;

/**
 * Counts the work of one kernel in this process, in all its runs. Only the checked targets {@code
 * a2a3sim} and {@code a5sim} count. Cycles are estimates from the rates of the target's
 * description; they were not measured on a device. The counts of an operation are added once all
 * ranks of this process have completed it.
 *
 * @param kernel a name such as {@code all-reduce}; for a {@link org.windlass.kernel.KernelLibrary},
 *     {@code launch of ring_shift}
 * @param runs number of runs by ranks: an operation of 4 ranks counts 4
 * @param cores number of cores that ran the kernel, summed over all runs
 * @param cycles cycles until a core's last engine is done, summed over these cores
 * @param overlapCycles cycles in which a core's loads and its stores were both busy, summed over
 *     the cores
 * @param flags number of flags that kernels set for synchronization between engines
 * @param barriers number of barriers over all engines of a core
 * @param notifies number of notifications of signals
 * @param bufferBytes on-core memory, in bytes, up to the end of the highest tile; the maximum over
 *     all cores
 * @param engines the work of each engine
 */
public record KernelProfile(
    String kernel,
    long runs,
    long cores,
    long cycles,
    long overlapCycles,
    long flags,
    long barriers,
    long notifies,
    long bufferBytes,
    Map<Engine, Work> engines) {
  /** The engines of a core, with their names in the instruction set for tiles. */
  public enum Engine {
    /** Issues instructions, and checks signals of other cores. */
    S,
    /** Computes and casts. */
    V,
    /** Loads from memory to the core. */
    MTE2,
    /** Stores from the core to memory. */
    MTE3
  }

  /** The work of one engine. {@code busyCycles} is the sum over all cores. */
  public record Work(long instructions, long bytes, long busyCycles) {}

  public KernelProfile {
    Objects.requireNonNull(kernel, "kernel");
    engines = Copies.map(engines, "engines");
  }

  /**
   * Clears the counts, and starts to count in this process.
   *
   * @param traces whether to keep each instruction too, at most about 130,000, for {@link #trace}
   * @throws UnsupportedException if the target of this process counts nothing
   */
  public static void start(boolean traces) {
    Natives.call((out, error) -> Native.wl_profile_start(traces ? 1 : 0, error));
  }

  /**
   * Returns the counts of all kernels that have run, in the order of their names.
   *
   * @throws UnsupportedException if the target of this process counts nothing
   */
  public static List<KernelProfile> all() {
    int size = Structs.KernelProfile.SIZE;
    for (int capacity = 0; ; ) {
      ByteBuffer structs = Structs.allocate(Math.max(1, capacity) * size);
      structs.putInt(0, size);
      long address = NativeMemory.address(structs);
      int most = capacity;
      int count =
          Math.toIntExact(
              Natives.call((out, e) -> Native.wl_profile_kernels(address, most, out, e)));
      if (count <= most) {
        return IntStream.range(0, count).mapToObj(i -> of(structs, i * size)).toList();
      }
      capacity = count;
    }
  }

  /**
   * Returns the engines' work since {@link #start} as JSON for the trace viewers of Chrome and
   * Perfetto. Each rank is a process, and each engine of its cores is a thread. A cycle is shown as
   * a microsecond, and operations follow one another. A one-sided operation, such as a put, is
   * shown at rank 0.
   *
   * @throws UnsupportedException if the target of this process counts nothing
   */
  public static String trace() {
    for (byte[] text = new byte[1 << 16]; ; ) {
      byte[] into = text;
      int length =
          Math.toIntExact(
              Natives.call((out, e) -> Native.wl_profile_trace(into, into.length, out, e)));
      if (length <= into.length) {
        return new String(into, 0, length, StandardCharsets.UTF_8);
      }
      text = new byte[length];
    }
  }

  private static KernelProfile of(ByteBuffer struct, int at) {
    Map<Engine, Work> engines = new EnumMap<>(Engine.class);
    for (Engine engine : Engine.values()) {
      int word = at + Long.BYTES * engine.ordinal();
      engines.put(
          engine,
          new Work(
              struct.getLong(word + Structs.KernelProfile.INSTRUCTIONS),
              struct.getLong(word + Structs.KernelProfile.BYTES),
              struct.getLong(word + Structs.KernelProfile.BUSY_CYCLES)));
    }
    int room = Structs.KernelProfile.RUNS - Structs.KernelProfile.KERNEL;
    return new KernelProfile(
        Structs.text(struct, at + Structs.KernelProfile.KERNEL, room),
        struct.getLong(at + Structs.KernelProfile.RUNS),
        struct.getLong(at + Structs.KernelProfile.CORES),
        struct.getLong(at + Structs.KernelProfile.CYCLES),
        struct.getLong(at + Structs.KernelProfile.OVERLAP_CYCLES),
        struct.getLong(at + Structs.KernelProfile.FLAGS),
        struct.getLong(at + Structs.KernelProfile.BARRIERS),
        struct.getLong(at + Structs.KernelProfile.NOTIFIES),
        struct.getLong(at + Structs.KernelProfile.BUFFER_BYTES),
        engines);
  }
}
