// SPDX-License-Identifier: Apache-2.0
package org.windlass.reshard;

import java.util.Objects;
import org.windlass.DType;
import org.windlass.InvalidArgumentException;

/** The dtypes that a redistribution casts: floating ones that have arithmetic. */
final class Casts {
  private Casts() {}

  /** Whether tensors of this dtype are cast where another one is asked for. */
  static boolean touch(DType dtype) {
    return dtype.canCast(DType.F32);
  }

  /** Whether tensors of this dtype would be cast, and there is no arithmetic of it here. */
  static boolean lack(DType dtype) {
    return dtype == DType.F8E4M3FNUZ || dtype == DType.F8E5M2FNUZ;
  }

  /**
   * A dtype that floating tensors are cast to.
   *
   * @return {@code dtype}
   * @throws InvalidArgumentException if it is none
   */
  static DType require(DType dtype) {
    Objects.requireNonNull(dtype, "dtype");
    if (!touch(dtype)) {
      throw new InvalidArgumentException(
          dtype + ": not a dtype that floating tensors are cast to; those are f64 f32 f16 bf16 f8e4m3"
              + " f8e5m2");
    }
    return dtype;
  }
}
