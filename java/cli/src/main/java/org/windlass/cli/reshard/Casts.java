// SPDX-License-Identifier: Apache-2.0
package org.windlass.cli.reshard;

import org.windlass.DType;
import org.windlass.InvalidArgumentException;

/** Which dtypes a redistribution casts: floating ones that have arithmetic. */
final class Casts {
  private Casts() {}

  static boolean touch(DType dtype) {
    return dtype.isFloating() && dtype.canCast(DType.F32);
  }

  /** A dtype that floating tensors are cast to. */
  static DType require(DType dtype) {
    if (!touch(dtype)) {
      throw new InvalidArgumentException(
          dtype + ": not a dtype that floating tensors are cast to; those are f64 f32 f16 bf16 f8e4m3"
              + " f8e5m2");
    }
    return dtype;
  }
}
