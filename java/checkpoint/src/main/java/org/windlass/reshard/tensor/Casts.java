// SPDX-License-Identifier: Apache-2.0
package org.windlass.reshard.tensor;

import java.util.Objects;
import org.windlass.DType;
import org.windlass.error.InvalidArgumentException;

/** The dtypes that a redistribution casts: floating ones that have arithmetic. */
public final class Casts {
  private Casts() {}

  /** Whether tensors of this dtype are cast where another one is asked for. */
  public static boolean touch(DType dtype) {
    return dtype.canCast(DType.F32);
  }

  /** Whether tensors of this dtype would be cast, and there is no arithmetic of it here. */
  public static boolean lack(DType dtype) {
    return dtype == DType.F8E4M3FNUZ || dtype == DType.F8E5M2FNUZ;
  }

  /**
   * A dtype that floating tensors are cast to.
   *
   * @return {@code dtype}
   * @throws InvalidArgumentException if it is none
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

  /** Whether a tensor is cast to a dtype of a smaller range, be it on its way only. */
  public static boolean shrink(TensorMove move) {
    return largest(narrowest(move)) < largest(move.source().dtype());
  }

  /** The dtype of the smallest range that a tensor is cast to; its own where it is not cast. */
  public static DType narrowest(TensorMove move) {
    DType to = move.target().dtype();
    DType wire = move.wire().orElse(to);
    return largest(wire) < largest(to) ? wire : to;
  }

  /** The largest finite value of a dtype of {@link #touch}. */
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
