// SPDX-License-Identifier: Apache-2.0
package org.windlass.link;

import java.util.List;
import org.jspecify.annotations.Nullable;
import org.windlass.error.AbortedException;
import org.windlass.error.InvalidArgumentException;
import org.windlass.error.WindlassException;

/**
 * State of the versions in a receiver's targets. A commit replaces it in one step.
 *
 * @param version the version that is complete, or {@link #NONE}
 * @param half half that holds it
 * @param arriving the version that a move writes or has written over it, or {@link #NONE}
 * @param incomplete names of tensors that hold neither version completely
 * @param failure why {@code arriving} did not arrive; null while it still may
 */
record Holding(
    long version, int half, long arriving, List<String> incomplete, @Nullable Throwable failure) {
  static final long NONE = -1;

  /** Stands for a version whose number this rank does not know yet. */
  static final long NEXT = -2;

  /** Nothing has arrived yet. */
  static final Holding NOTHING = new Holding(NONE, 0, NONE, List.of(), null);

  static Holding of(long version, int half) {
    return new Holding(version, half, NONE, List.of(), null);
  }

  static Holding overwritten(long arriving) {
    return new Holding(NONE, 0, arriving, List.of(), null);
  }

  Holding incomplete(List<String> tensors, Throwable cause) {
    return new Holding(NONE, half, arriving, tensors, cause);
  }

  /** Returns the half to read. Throws if there is none. */
  int readable(String what) {
    if (version != NONE) {
      return half;
    }
    if (failure != null) {
      throw new AbortedException(
          what + ": version " + arriving + " did not arrive whole; incomplete are " + incomplete
              + ". Receive a version anew (" + failure.getMessage() + ")",
          failure,
          "",
          failure instanceof WindlassException known ? known.faultyRanks() : List.of());
    }
    throw new InvalidArgumentException(
        what + ": "
            + (arriving == NONE
                ? "no version has arrived yet"
                : (arriving == NEXT ? "the next version" : "version " + arriving)
                    + " is arriving in place; read when receive has returned"));
  }
}
