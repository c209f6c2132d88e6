// SPDX-License-Identifier: Apache-2.0
package org.windlass.internal;

import java.util.Optional;
import org.jspecify.annotations.Nullable;
import org.windlass.error.InvalidArgumentException;
import org.windlass.error.UnsupportedException;

/**
 * Reports whether the native library is loaded. Code that makes a tensor, a group or a file calls
 * {@link #require} first, so that each such call throws the reason if the library did not load. The
 * JVM itself reports the reason only to the first call.
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
   * A native function that returns an error code. It writes its result and an error record to the
   * given addresses.
   */
  @FunctionalInterface
  public interface Call {
    int make(long out, long error);
  }

  /** Makes a call on the calling thread. Returns the call's result, or throws its failure. */
  public static long call(Call call) {
    require();
    try (Scratch scratch = Scratch.take()) {
      Failures.check(call.make(scratch.out(), scratch.error()), scratch);
      return scratch.outValue();
    }
  }

  /**
   * Throws unless the native library is loaded.
   *
   * @throws UnsupportedException if it did not load; the message has each place searched, and the
   *     problem there
   * @throws InvalidArgumentException if a setting names a target that does not exist
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
