// SPDX-License-Identifier: Apache-2.0
package org.windlass.link;

import java.util.List;
import org.jspecify.annotations.Nullable;
import org.windlass.error.AbortedException;
import org.windlass.error.InvalidArgumentException;
import org.windlass.error.WindlassException;

/**
 * State of the versions in a receiver's targets. A receive replaces the whole state in one step.
 *
 * @param version the version that is complete, or {@link #NONE}
 * @param half index of the memory half that holds {@code version}, 0 or 1; 0 in place
 * @param arriving the version that is overwriting {@code version} in place, or {@link #NONE}
 * @param incomplete names of tensors that hold parts of two versions
 * @param failure why {@code arriving} did not arrive; null while it may still arrive
 */
record Holding(
    long version, int half, long arriving, List<String> incomplete, @Nullable Throwable failure) {
  static final long NONE = -1;

  /** Value of {@code arriving} while this rank does not know the version's number yet. */
  static final long NEXT = -2;

  /** State before the first version. */
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

  /** Returns the index of the memory half to read. Throws if there is no complete version. */
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
