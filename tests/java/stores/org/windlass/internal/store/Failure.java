// SPDX-License-Identifier: Apache-2.0
package org.windlass.internal.store;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.catchThrowable;

import java.util.List;
import org.assertj.core.api.AbstractStringAssert;
import org.assertj.core.api.ThrowableAssert.ThrowingCallable;

/** What stores throw in these tests, which know no package above. */
public final class Failure extends RuntimeException {
  private static final long serialVersionUID = 1L;

  private final int code;

  private Failure(int code, String message, Throwable cause) {
    super(message, cause);
    this.code = code;
  }

  /** A {@link org.windlass.internal.FailureMaker}. */
  public static RuntimeException make(
      int code, String message, Throwable cause, String operation, List<Integer> culprits) {
    return new Failure(code, message, cause);
  }

  /** The message of what {@code call} throws, which is of {@code code}. */
  public static AbstractStringAssert<?> assertFails(int code, ThrowingCallable call) {
    Throwable thrown = catchThrowable(call);
    assertThat(thrown).isInstanceOf(Failure.class);
    assertThat(((Failure) thrown).code).as(thrown.getMessage()).isEqualTo(code);
    return assertThat(thrown.getMessage());
  }
}
