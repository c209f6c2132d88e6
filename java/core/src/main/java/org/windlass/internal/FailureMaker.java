// SPDX-License-Identifier: Apache-2.0
package org.windlass.internal;

import java.util.List;

/**
 * The way from a code of the C ABI to an exception, which is a type of a package above this one.
 */
@FunctionalInterface
public interface FailureMaker {
  /**
   * An exception that the caller throws.
   *
   * @param code one of {@code wl_code}
   * @param cause may be null
   * @param operation in which the failure was observed; empty if in none
   * @param culprits the ranks at fault
   */
  RuntimeException make(
      int code, String message, Throwable cause, String operation, List<Integer> culprits);

  /** A failure that no operation, rank or other exception led to. */
  default RuntimeException make(int code, String message) {
    return make(code, message, null, "", List.of());
  }

  /** A failure that another exception caused. */
  default RuntimeException make(int code, String message, Throwable cause) {
    return make(code, message, cause, "", List.of());
  }

  /** A failure that ranks caused. */
  default RuntimeException make(int code, String message, List<Integer> culprits) {
    return make(code, message, null, "", culprits);
  }
}
