// SPDX-License-Identifier: Apache-2.0
package org.windlass.reshard;

import org.windlass.DType;
import org.windlass.InvalidArgumentException;

/** Which dtypes a redistribution casts: floating ones that have arithmetic. */
public final class Casts {
  private Casts() {}

  public static boolean touch(DType dtype) {
    return dtype.isFloating() && dtype.canCast(DType.F32);
  }

  /** A dtype that floating tensors are cast to. */
  public static DType require(DType dtype) {
    if (!touch(dtype)) {
      throw new InvalidArgumentException(
          dtype + ": not a dtype that floating tensors are cast to; those are f64 f32 f16 bf16 f8e4m3"
              + " f8e5m2");
    }
    return dtype;
  }
}
