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

  public long address() {
    return address;
  }

  private void grow(int count) {
    var buffer = Structs.allocate(Math.multiplyExact(count, Long.BYTES));
    words = buffer.asLongBuffer();
    address = NativeMemory.address(buffer);
  }
}
