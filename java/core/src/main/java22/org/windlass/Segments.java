// SPDX-License-Identifier: Apache-2.0
package org.windlass;

import java.lang.foreign.MemorySegment;
import org.windlass.error.InvalidArgumentException;
import org.windlass.internal.memory.Memory;

/** Wraps memory segments as {@link Memory}. Java 22 and later load this class. */
final class Segments {
  private Segments() {}

  /** The memory of a native {@code java.lang.foreign.MemorySegment}. */
  static Memory memory(Object segment) {
    if (!(segment instanceof MemorySegment memory)) {
      throw new InvalidArgumentException(
          "ofSegment: segment is "
              + (segment == null ? "null" : "a " + segment.getClass().getName())
              + "; it must be a java.lang.foreign.MemorySegment");
    }
    if (!memory.isNative()) {
      throw new InvalidArgumentException(
          "ofSegment: segment is on the Java heap, where peers can't reach it; allocate it from an"
              + " Arena");
    }
    return Memory.of(
        memory.address(), memory.byteSize(), memory.isReadOnly(), memory, memory.scope()::isAlive);
  }
}
