// SPDX-License-Identifier: Apache-2.0
package org.windlass.gpu;

import java.util.Objects;
import org.jspecify.annotations.Nullable;
import org.windlass.error.InvalidArgumentException;
import org.windlass.error.UnsupportedException;
import org.windlass.internal.Native;
import org.windlass.internal.NativeMemory;
import org.windlass.internal.Natives;

/**
 * Chooses how many cores (blocks of Windlass's kernel) an operation uses on a rank's GPU, for
 * target cuda. The default is the largest number of cores that can run on the GPU at a time. A
 * table from {@code windlass bench --tune-grids} may give smaller numbers. All ranks use the
 * smallest number of any rank.
 */
public final class CudaGrids {
  /** Environment variable with the path of the table that a process uses. */
  public static final String VARIABLE = "WINDLASS_CUDA_GRIDS";

  private CudaGrids() {}

  /**
   * Returns the number of cores that run at a time on a GPU. All ranks of this process on that GPU
   * share them.
   *
   * @throws InvalidArgumentException if there is no such GPU
   * @throws UnsupportedException if this process runs another target's kernels
   */
  public static int cores(int device) {
    CudaDriver.requireNumber(device);
    return (int) Natives.call((out, error) -> Native.wl_cuda_cores(device, out, error));
  }

  /**
   * Returns the number of rows of the current table that apply to the model of the given GPU.
   * Returns 0 if there is no table.
   *
   * @param device number of the GPU
   * @throws InvalidArgumentException if there is no such GPU, or if {@link #VARIABLE} names a file
   *     that is not a valid table
   */
  public static int rows(int device) {
    CudaDriver.requireNumber(device);
    return (int) Natives.call((out, error) -> Native.wl_cuda_grids_rows(device, out, error));
  }

  /**
   * Makes this process use {@code table} from its next operation on, instead of the table of {@link
   * #VARIABLE}.
   *
   * @param table the text of the table
   * @throws InvalidArgumentException if a line is wrong; the message names the line, and the
   *     previous table stays in use
   */
  public static void use(String table) {
    Objects.requireNonNull(table, "table");
    int nul = table.indexOf('\0');
    if (nul >= 0) {
      throw new InvalidArgumentException("character " + nul + " of a table of grids is a NUL");
    }
    use(NativeMemory.utf8(table));
  }

  /** Makes this process use the table of {@link #VARIABLE} again, or none if that is not set. */
  public static void useVariable() {
    use((byte[]) null);
  }

  private static void use(byte @Nullable [] table) {
    Natives.call((out, error) -> Native.wl_cuda_grids_use(table, error));
  }
}
