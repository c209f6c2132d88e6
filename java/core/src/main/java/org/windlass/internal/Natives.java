// SPDX-License-Identifier: Apache-2.0
package org.windlass.internal;

import java.util.Optional;
import org.jspecify.annotations.Nullable;
import org.windlass.error.InvalidArgumentException;
import org.windlass.error.UnsupportedException;

/**
 * Knows whether the native library is loaded. Code that makes a tensor, a group or a file calls
 * {@link #require} first. Otherwise only the first call would get the reason: the JVM reports it
 * only once for a class that fails to initialise.
 */
public final class Natives {
  private static final @Nullable UnsatisfiedLinkError REFUSAL = load();

  private Natives() {}

  private static @Nullable UnsatisfiedLinkError load() {
    try {
      NativeLoader.load();
      return null;
    } catch (UnsatisfiedLinkError refusal) {
      return refusal;
    }
  }

  /** Returns each place that was searched and the problem there. Empty if the library loaded. */
  public static Optional<String> refusal() {
    return Optional.ofNullable(REFUSAL).map(Throwable::getMessage);
  }

  /**
   * Throws unless the native library is loaded.
   *
   * @throws UnsupportedException if it did not load; names each place searched and the problem
   *     there
   * @throws InvalidArgumentException if the setting names a target that does not exist
   */
  public static void require() {
    if (REFUSAL != null) {
      String message = String.valueOf(REFUSAL.getMessage());
      throw REFUSAL instanceof NativeLoader.UnknownTargetError
          ? new InvalidArgumentException(message)
          : new UnsupportedException(message);
    }
  }
}
