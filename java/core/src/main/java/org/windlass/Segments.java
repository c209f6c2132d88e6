// SPDX-License-Identifier: Apache-2.0
package org.windlass;

import org.windlass.error.UnsupportedException;
import org.windlass.internal.memory.Memory;

/**
 * Throws UnsupportedException for each memory segment. It is used before Java 22, which introduces
 * segments. On Java 22 and later, the class of this name under META-INF/versions/22 replaces it and
 * wraps segments as {@link Memory}.
 */
final class Segments {
  private Segments() {}

  @SuppressWarnings("unused") // META-INF/versions/22 uses it
  static Memory memory(Object segment) {
    int feature = Runtime.version().feature();
    if (feature < 22) {
      throw new UnsupportedException(
          "ofSegment: MemorySegment needs Java 22 or later; this is Java " + feature
              + ". Tensor.of takes direct buffers and addresses");
    }
    throw new UnsupportedException(
        "ofSegment: the classes for MemorySegment, under META-INF/versions/22, are not in effect in "
            + Segments.class.getProtectionDomain().getCodeSource().getLocation()
            + ": a jar has them that JDK 22 or later built, and whose manifest says Multi-Release:"
            + " true. Build one so, or take Tensor.of over segment.asByteBuffer()");
  }
}
