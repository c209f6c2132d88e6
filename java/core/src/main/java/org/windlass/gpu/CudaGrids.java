// SPDX-License-Identifier: Apache-2.0
package org.windlass.gpu;

import java.util.Objects;
import org.windlass.error.InvalidArgumentException;
import org.windlass.error.UnsupportedException;
import org.windlass.internal.Failures;
import org.windlass.internal.Native;
import org.windlass.internal.NativeMemory;
import org.windlass.internal.Natives;
import org.windlass.internal.Scratch;

/**
 * Grids of target cuda: how many cores, blocks of Windlass' kernel, a rank takes of its GPU in an
 * operation. They are as many as run there at a time, unless a table, which {@code windlass bench
 * --tune-grids} writes, says fewer; all ranks take what the fewest of them would.
 */
public final class CudaGrids {
  /** The variable of the environment that names the file with the table of a process. */
  public static final String VARIABLE = "WINDLASS_CUDA_GRIDS";

  private CudaGrids() {}

  /**
   * How many cores run at a time on that GPU, among all ranks of this process that have it.
   *
   * @throws InvalidArgumentException if there is no such GPU
   * @throws UnsupportedException if this process runs another target's kernels
   */
  public static int cores(int device) {
    Natives.require();
    CudaDriver.requireNumber(device);
    try (Scratch scratch = Scratch.take()) {
      check(Native.wl_cuda_cores(device, scratch.out(), scratch.error()), scratch);
      return (int) scratch.outValue();
    }
  }

  /**
   * How many rows of the table in use are of GPUs like that one; 0 where there is no table.
   *
   * @throws InvalidArgumentException if there is no such GPU, or what {@link #VARIABLE} names is no
   *     table
   */
  public static int rows(int device) {
    Natives.require();
    CudaDriver.requireNumber(device);
    try (Scratch scratch = Scratch.take()) {
      check(Native.wl_cuda_grids_rows(device, scratch.out(), scratch.error()), scratch);
      return (int) scratch.outValue();
    }
  }

  /**
   * Has this process go by a table from its next operation on, in place of that of {@link
   * #VARIABLE}.
   *
   * @param table its text
   * @throws InvalidArgumentException naming the line that is wrong; all stays as it was
   */
  public static void use(String table) {
    Objects.requireNonNull(table, "table");
    int nul = table.indexOf('\0');
    if (nul >= 0) {
      throw new InvalidArgumentException("character " + nul + " of a table of grids is a NUL");
    }
    use(NativeMemory.utf8(table));
  }

  /** Has this process go by the table of {@link #VARIABLE} again, or by none. */
  public static void useVariable() {
    use((byte[]) null);
  }

  private static void use(byte[] table) {
    Natives.require();
    try (Scratch scratch = Scratch.take()) {
      check(Native.wl_cuda_grids_use(table, scratch.error()), scratch);
    }
  }

  private static void check(int code, Scratch scratch) {
    Failures.check(code, scratch);
  }
}
