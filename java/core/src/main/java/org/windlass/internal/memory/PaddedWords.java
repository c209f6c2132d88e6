// SPDX-License-Identifier: Apache-2.0
package org.windlass.internal.memory;

import java.lang.invoke.MethodHandles;
import java.lang.invoke.VarHandle;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import org.windlass.internal.NativeMemory;

/**
 * 32-bit words, numbered from 0, that threads and processes share. Each word is alone in two cache
 * lines.
 */
public class PaddedWords {
  private static final VarHandle WORD =
      MethodHandles.byteBufferViewVarHandle(int[].class, ByteOrder.nativeOrder());
  private static final VarHandle LONG_WORD =
      MethodHandles.byteBufferViewVarHandle(long[].class, ByteOrder.nativeOrder());
  private static final int PAD = 128;

  private final ByteBuffer words;

  /**
   * Wraps {@code count} words with their current values. {@code address} is a multiple of 128, and
   * the caller keeps the memory valid.
   */
  public PaddedWords(long address, int count) {
    words = NativeMemory.buffer(address, bytes(count));
  }

  public static long bytes(int count) {
    return (long) count * PAD;
  }

  /** Returns the value of the word without memory ordering. */
  public final int peek(int word) {
    return (int) WORD.getOpaque(words, word * PAD);
  }

  /** Sets the word without memory ordering. */
  public final void set(int word, int value) {
    WORD.setOpaque(words, word * PAD, value);
  }

  /**
   * Returns the value of the word. All memory writes before the {@link #publish} of that value are
   * then visible.
   */
  public final int read(int word) {
    return (int) WORD.getAcquire(words, word * PAD);
  }

  /** Sets the word. A thread that {@link #read}s the value sees this thread's earlier writes. */
  public final void publish(int word, int value) {
    WORD.setRelease(words, word * PAD, value);
  }

  /** Returns the 64-bit value at the word without memory ordering. */
  public final long peekLong(int word) {
    return (long) LONG_WORD.getOpaque(words, word * PAD);
  }

  /**
   * Adds to a word of 64 bits atomically, with full ordering. Returns the value before the
   * addition.
   */
  public final long addLong(int word, long value) {
    return (long) LONG_WORD.getAndAdd(words, word * PAD, value);
  }

  /** Adds 1 atomically, with full ordering. Returns the new value. */
  public final int increment(int word) {
    return (int) WORD.getAndAdd(words, word * PAD, 1) + 1;
  }
}
