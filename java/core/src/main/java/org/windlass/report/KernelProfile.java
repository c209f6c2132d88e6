// SPDX-License-Identifier: Apache-2.0
package org.windlass.report;

import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.EnumMap;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import org.windlass.error.UnsupportedException;
import org.windlass.internal.Copies;
import org.windlass.internal.Failures;
import org.windlass.internal.Native;
import org.windlass.internal.NativeMemory;
import org.windlass.internal.Natives;
import org.windlass.internal.Scratch;
import org.windlass.internal.Structs;

/**
 * What one kernel did in this process, in all its runs, on a checked target: {@code a2a3sim} or
 * {@code a5sim}; others count nothing. Cycles are estimates by rates that the target states, which
 * nobody measured on a device. What ranks did counts once all of this process have left an
 * operation.
 *
 * @param kernel such as {@code all-reduce}; of a {@link org.windlass.kernel.KernelLibrary}: {@code
 *     launch of ring_shift}
 * @param runs of ranks: an operation of 4 ranks counts 4
 * @param cores that ran it, in all runs
 * @param cycles of those cores, each until its last engine is done
 * @param overlapCycles in which a core's loads and its stores were both busy
 * @param flags that were set
 * @param barriers of all pipes
 * @param notifies of signals
 * @param bufferBytes of on-core memory, to the highest tile's end: the most of any core
 * @param engines what each engine did
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
  /** The engines of a core, by the names of the tile ISA. */
  public enum Engine {
    /** Issues instructions and looks at signals. */
    S,
    /** Computes and casts. */
    V,
    /** Loads from memory to the core. */
    MTE2,
    /** Stores from the core to memory. */
    MTE3
  }

  /** The work of one engine; {@code busyCycles} are those of all cores together. */
  public record Work(long instructions, long bytes, long busyCycles) {}

  /** Checks the components. */
  public KernelProfile {
    Objects.requireNonNull(kernel, "kernel");
    engines = Copies.map(engines, "engines");
  }

  /**
   * Has the process count from here on, and forgets what it has counted.
   *
   * @param traces whether it also keeps each instruction, of some 130,000 at most, for {@link
   *     #trace}
   * @throws UnsupportedException if the target of this process counts nothing
   */
  public static void start(boolean traces) {
    Natives.require();
    try (Scratch scratch = Scratch.take()) {
      int code = Native.wl_profile_start(traces ? 1 : 0, scratch.error());
      Failures.check(code, scratch);
    }
  }

  /**
   * All kernels that have run, by name.
   *
   * @throws UnsupportedException if the target of this process counts nothing
   */
  public static List<KernelProfile> all() {
    Natives.require();
    int size = Structs.KernelProfile.SIZE;
    int capacity = 0;
    while (true) {
      ByteBuffer structs = Structs.allocate(Math.max(1, capacity) * size);
      structs.putInt(0, size);
      int count;
      try (Scratch scratch = Scratch.take()) {
        int code =
            Native.wl_profile_kernels(
                NativeMemory.address(structs), capacity, scratch.out(), scratch.error());
        Failures.check(code, scratch);
        count = Math.toIntExact(scratch.outValue());
      }
      if (count <= capacity) {
        List<KernelProfile> all = new ArrayList<>();
        for (int i = 0; i < count; i++) {
          all.add(of(structs, i * size));
        }
        return List.copyOf(all);
      }
      capacity = count;
    }
  }

  /**
   * What the engines did since {@link #start}, as JSON that Chrome's and Perfetto's viewers read: a
   * process for each rank, a thread for each engine of its cores, a cycle as a microsecond, one
   * operation after the other. What a rank did alone, as a put, is rank 0's there.
   *
   * @throws UnsupportedException if the target of this process counts nothing
   */
  public static String trace() {
    Natives.require();
    byte[] text = new byte[1 << 16];
    while (true) {
      long length;
      try (Scratch scratch = Scratch.take()) {
        int code =
            Native.wl_profile_trace(text, text.length, scratch.out(), scratch.error());
        Failures.check(code, scratch);
        length = scratch.outValue();
      }
      if (length <= text.length) {
        return new String(text, 0, (int) length, StandardCharsets.UTF_8);
      }
      text = new byte[Math.toIntExact(length)];
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
