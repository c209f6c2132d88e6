// SPDX-License-Identifier: Apache-2.0
package org.windlass.bench;

import java.lang.invoke.MethodHandles;
import java.lang.invoke.VarHandle;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import org.windlass.Communicator;
import org.windlass.Window;
import org.windlass.internal.Access;
import org.windlass.internal.NativeMemory;

/**
 * Words that all ranks of a communicator share, whichever process they live in, zero at first and
 * each alone in two cache lines: rank 0's part of a window, which every process has in its memory.
 */
final class SharedWords implements AutoCloseable {
  private static final VarHandle WORD =
      MethodHandles.byteBufferViewVarHandle(int[].class, ByteOrder.nativeOrder());
  private static final int PAD = 128;

  private final Window window;
  private final ByteBuffer words;

  /** Collective. Valid until it is closed, which each rank does for itself. */
  SharedWords(Communicator comm, int count) {
    window = comm.window((long) count * PAD);
    words = NativeMemory.buffer(Access.PARTS.of(window).applyAsLong(0), (long) count * PAD);
  }

  /** What is known of the word; orders nothing. */
  int peek(int word) {
    return (int) WORD.getOpaque(words, word * PAD);
  }

  /** Sets it; orders nothing. */
  void set(int word, int value) {
    WORD.setOpaque(words, word * PAD, value);
  }

  /** Its value, and what was written before that was published. */
  int read(int word) {
    return (int) WORD.getAcquire(words, word * PAD);
  }

  /** Sets it, behind all that this thread has written. */
  void publish(int word, int value) {
    WORD.setRelease(words, word * PAD, value);
  }

  /** Adds one, ordered with every other rank's addition, and returns the sum. */
  int increment(int word) {
    return (int) WORD.getAndAdd(words, word * PAD, 1) + 1;
  }

  @Override
  public void close() {
    window.close();
  }
}
