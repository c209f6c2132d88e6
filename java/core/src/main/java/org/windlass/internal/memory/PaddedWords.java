// SPDX-License-Identifier: Apache-2.0
package org.windlass.internal.memory;

import java.lang.invoke.MethodHandles;
import java.lang.invoke.VarHandle;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import org.windlass.internal.NativeMemory;

/** Words of 32 bits that threads and processes share. Each has two cache lines of its own. */
public class PaddedWords {
  private static final VarHandle WORD =
      MethodHandles.byteBufferViewVarHandle(int[].class, ByteOrder.nativeOrder());
  private static final VarHandle LONG_WORD =
      MethodHandles.byteBufferViewVarHandle(long[].class, ByteOrder.nativeOrder());
  private static final int PAD = 128;

  private final ByteBuffer words;

  /**
   * Wraps {@code count} words at {@code address}, a multiple of 128, with their current values. The
   * caller keeps the memory valid.
   */
  public PaddedWords(long address, int count) {
    words = NativeMemory.buffer(address, bytes(count));
  }

  public static long bytes(int count) {
    return (long) count * PAD;
  }

  /** Returns the value of the word without any ordering. */
  public final int peek(int word) {
    return (int) WORD.getOpaque(words, word * PAD);
  }

  /** Sets the word without any ordering. */
  public final void set(int word, int value) {
    WORD.setOpaque(words, word * PAD, value);
  }

  /**
   * Returns the value of the word with acquire ordering: after it, writes that came before the
   * {@link #publish} of this value are visible.
   */
  public final int read(int word) {
    return (int) WORD.getAcquire(words, word * PAD);
  }

  /** Sets the word with release ordering: earlier writes of this thread become visible first. */
  public final void publish(int word, int value) {
    WORD.setRelease(words, word * PAD, value);
  }

  /** Returns a word of 64 bits without any ordering. */
  public final long peekLong(int word) {
    return (long) LONG_WORD.getOpaque(words, word * PAD);
  }

  /** Adds to a word of 64 bits, and returns its value before. All additions are ordered. */
  public final long addLong(int word, long value) {
    return (long) LONG_WORD.getAndAdd(words, word * PAD, value);
  }

  /** Adds one and returns the sum. All additions are ordered. */
  public final int increment(int word) {
    return (int) WORD.getAndAdd(words, word * PAD, 1) + 1;
  }
}
