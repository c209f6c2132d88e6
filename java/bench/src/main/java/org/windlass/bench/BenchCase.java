// SPDX-License-Identifier: Apache-2.0
package org.windlass.bench;

import java.util.Map;
import org.windlass.DType;
import org.windlass.Target;

/**
 * The case that a bench measures, apart from the size.
 *
 * @param launch what ranks are, {@code threads} or {@code processes}
 * @param details further fields of a result, such as the layouts of a redistribution
 */
public record BenchCase(
    String op,
    Target target,
    String launch,
    boolean plain,
    DType dtype,
    Map<String, Object> details) {
  /** The same of an operation that is called so. */
  BenchCase of(String op) {
    return new BenchCase(op, target, launch, plain, dtype, details);
  }
}
