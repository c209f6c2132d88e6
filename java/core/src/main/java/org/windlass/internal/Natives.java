// SPDX-License-Identifier: Apache-2.0
package org.windlass.internal;

import java.util.Optional;

/**
 * The question whether the native library is there. A class that can't be initialised without it
 * gives its reason to the first caller alone, so what makes a tensor, a group or a file asks here
 * before.
 */
public final class Natives {
  /** Why it did not load; null if it did. */
  private static final UnsatisfiedLinkError REFUSAL = load();

  private Natives() {}

  private static UnsatisfiedLinkError load() {
    try {
      NativeLoader.load();
      return null;
    } catch (UnsatisfiedLinkError refusal) {
      return refusal;
    }
  }

  /** Each place where it was looked for, and what was wrong there; empty where it loaded. */
  public static Optional<String> refusal() {
    return Optional.ofNullable(REFUSAL).map(Throwable::getMessage);
  }

  /**
   * Refuses whatever needs it.
   *
   * @param failures makes what is thrown, of code Unsupported: it names each place where the
   *     library was looked for, and what was wrong there; of code InvalidArgument, where the target
   *     of this process is a name that none has
   */
  public static void require(FailureMaker failures) {
    if (REFUSAL != null) {
      int code =
          REFUSAL instanceof NativeLoader.UnknownTargetError
              ? Native.WL_INVALID_ARGUMENT
              : Native.WL_UNSUPPORTED;
      throw failures.make(code, REFUSAL.getMessage());
    }
  }
}
