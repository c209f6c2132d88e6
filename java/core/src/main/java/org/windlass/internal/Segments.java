// SPDX-License-Identifier: Apache-2.0
package org.windlass.internal;

import org.windlass.UnsupportedException;

/** Memory segments as {@link Memory}. This is what runs before Java 22, which has none. */
public final class Segments {
  private Segments() {}

  /** The memory of a native {@code java.lang.foreign.MemorySegment}. */
  @SuppressWarnings("unused") // META-INF/versions/22 uses it
  public static Memory memory(Object segment) {
    throw new UnsupportedException(
        "MemorySegment needs Java 22 or later; this is Java " + Runtime.version().feature());
  }
}
