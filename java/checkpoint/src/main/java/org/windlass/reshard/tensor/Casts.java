// SPDX-License-Identifier: Apache-2.0
package org.windlass.reshard.tensor;

import java.util.Objects;
import org.windlass.DType;
import org.windlass.error.InvalidArgumentException;

/**
 * Decides which dtypes a redistribution casts. These are the floating dtypes that can be converted
 * by arithmetic.
 */
public final class Casts {
  private Casts() {}

  /** Returns whether tensors of this dtype are cast if another one is requested. */
  public static boolean touch(DType dtype) {
    return dtype.canCast(DType.F32);
  }

  /**
   * Returns whether tensors of this dtype would be cast, but this machine has no arithmetic for it.
   */
  public static boolean lack(DType dtype) {
    return dtype == DType.F8E4M3FNUZ || dtype == DType.F8E5M2FNUZ;
  }

  /**
   * Throws unless floating tensors can be cast to a dtype.
   *
   * @return {@code dtype}
   * @throws InvalidArgumentException if they cannot
   */
  public static DType require(DType dtype) {
    Objects.requireNonNull(dtype, "dtype");
    if (!touch(dtype)) {
      throw new InvalidArgumentException(
          dtype + ": not a dtype that floating tensors are cast to; those are f64 f32 f16 bf16 f8e4m3"
              + " f8e5m2");
    }
    return dtype;
  }

  /** Returns whether a tensor is cast to a dtype of a smaller range, even if only on the wire. */
  public static boolean shrink(TensorMove move) {
    return largest(narrowest(move)) < largest(move.source().dtype());
  }

  /**
   * Returns the dtype with the smallest range among those of a tensor in IN, on the wire and in
   * OUT.
   */
  public static DType narrowest(TensorMove move) {
    DType to = move.target().dtype();
    DType wire = move.wire().orElse(to);
    return largest(wire) < largest(to) ? wire : to;
  }

  /** Returns the largest finite value of a dtype for which {@link #touch} is true. */
  public static double largest(DType dtype) {
    return switch (dtype) {
      case F8E4M3 -> 448;
      case F8E5M2 -> 57344;
      case F16 -> 65504;
      case BF16 -> 0x1.FEp127;
      case F32 -> Float.MAX_VALUE;
      default -> Double.MAX_VALUE;
    };
  }
}
