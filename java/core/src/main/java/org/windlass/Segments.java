// SPDX-License-Identifier: Apache-2.0
package org.windlass;

import org.windlass.error.UnsupportedException;
import org.windlass.internal.memory.Memory;

/**
 * Throws UnsupportedException for each memory segment. Java versions before 22, which lack
 * segments, load this class. Java 22 and later load the class of the same name under
 * META-INF/versions/22, which wraps segments as {@link Memory}.
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
