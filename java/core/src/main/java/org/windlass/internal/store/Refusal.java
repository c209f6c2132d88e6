// SPDX-License-Identifier: Apache-2.0
package org.windlass.internal.store;

import java.util.List;
import org.windlass.internal.FailureMaker;

/**
 * What a store says instead of a result, on its way to the caller: a code of the C ABI and a text.
 */
public final class Refusal extends RuntimeException {
  private static final long serialVersionUID = 1L;

  private final int code;

  public Refusal(int code, String message) {
    super(message, null, false, false);
    this.code = code;
  }

  /** One of {@code wl_code}. */
  int code() {
    return code;
  }

  /** What the caller of {@code call} gets; this is its cause, which names no call. */
  public RuntimeException thrown(String call, FailureMaker failures) {
    return failures.make(code, call + ": " + getMessage(), this, "", List.of());
  }
}
