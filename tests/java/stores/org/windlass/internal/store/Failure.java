// SPDX-License-Identifier: Apache-2.0
package org.windlass.internal.store;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.catchThrowable;

import org.assertj.core.api.AbstractStringAssert;
import org.assertj.core.api.ThrowableAssert.ThrowingCallable;
import org.windlass.error.WindlassException;

/** Checks of what stores throw. */
public final class Failure {
  private Failure() {}

  /** The message of what {@code call} throws, which is of {@code code}. */
  public static AbstractStringAssert<?> assertFails(int code, ThrowingCallable call) {
    Throwable thrown = catchThrowable(call);
    assertThat(thrown).isInstanceOf(WindlassException.class);
    int itsCode = ((WindlassException) thrown).code().number();
    assertThat(itsCode).as(thrown.getMessage()).isEqualTo(code);
    return assertThat(thrown.getMessage());
  }
}
