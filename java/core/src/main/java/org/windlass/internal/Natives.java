// SPDX-License-Identifier: Apache-2.0
package org.windlass.internal;

import java.util.Optional;
import org.windlass.error.InvalidArgumentException;
import org.windlass.error.UnsupportedException;

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
   * @throws UnsupportedException names each place where the library was looked for, and what was
   *     wrong there
   * @throws InvalidArgumentException if the target of this process is a name that none has
   */
  public static void require() {
    if (REFUSAL != null) {
      throw REFUSAL instanceof NativeLoader.UnknownTargetError
          ? new InvalidArgumentException(REFUSAL.getMessage())
          : new UnsupportedException(REFUSAL.getMessage());
    }
  }
}
