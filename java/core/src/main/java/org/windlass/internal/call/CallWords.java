// SPDX-License-Identifier: Apache-2.0
package org.windlass.internal.call;

import java.nio.LongBuffer;
import org.windlass.internal.NativeMemory;
import org.windlass.internal.Structs;

/** Native memory for words that describe a call. Only the thread in that call uses it. */
public final class CallWords {
  private LongBuffer words;
  private long address;

  CallWords() {
    grow(64);
  }

  /** Makes room for {@code count} words, which {@link #put} writes one by one. */
  public CallWords begin(int count) {
    if (count > words.capacity()) {
      grow(Math.max(count, 2 * words.capacity()));
    }
    words.clear();
    return this;
  }

  public CallWords put(long word) {
    words.put(word);
    return this;
  }

  /** Returns the address of the first word. It is valid until the next {@link #begin}. */
  public long address() {
    return address;
  }

  private void grow(int count) {
    var buffer = Structs.allocate(Math.multiplyExact(count, Long.BYTES));
    words = buffer.asLongBuffer();
    address = NativeMemory.address(buffer);
  }
}
