// SPDX-License-Identifier: Apache-2.0
package org.windlass.internal.memory;

import java.lang.invoke.MethodHandles;
import java.lang.invoke.VarHandle;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import org.windlass.internal.NativeMemory;

/** Words of memory that threads and processes share, each alone in two cache lines. */
public class PaddedWords {
  private static final VarHandle WORD =
      MethodHandles.byteBufferViewVarHandle(int[].class, ByteOrder.nativeOrder());
  private static final int PAD = 128;

  private final ByteBuffer words;

  /**
   * {@code count} words from an address on, a multiple of 128, with the values that are there. The
   * memory is the caller's to keep.
   */
  public PaddedWords(long address, int count) {
    words = NativeMemory.buffer(address, bytes(count));
  }

  /** Bytes that {@code count} words take. */
  public static long bytes(int count) {
    return (long) count * PAD;
  }

  /** What is known of the word; orders nothing. */
  public final int peek(int word) {
    return (int) WORD.getOpaque(words, word * PAD);
  }

  /** Sets it; orders nothing. */
  public final void set(int word, int value) {
    WORD.setOpaque(words, word * PAD, value);
  }

  /** Its value, and what was written before that was published. */
  public final int read(int word) {
    return (int) WORD.getAcquire(words, word * PAD);
  }

  /** Sets it, behind all that this thread has written. */
  public final void publish(int word, int value) {
    WORD.setRelease(words, word * PAD, value);
  }

  /** Adds one, ordered with every other addition, and returns the sum. */
  public final int increment(int word) {
    return (int) WORD.getAndAdd(words, word * PAD, 1) + 1;
  }
}
