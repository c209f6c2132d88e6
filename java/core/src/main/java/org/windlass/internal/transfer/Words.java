// SPDX-License-Identifier: Apache-2.0
package org.windlass.internal.transfer;

import java.nio.LongBuffer;
import java.util.Arrays;
import org.windlass.error.ResourceException;

/** A growing array of words. */
public final class Words {
  private static final int MOST = Integer.MAX_VALUE / Long.BYTES - 1;

  private long[] words = new long[64];
  private int size;

  public int size() {
    return size;
  }

  public void add(long word) {
    reserve(1);
    words[size++] = word;
  }

  public void add(long[] more) {
    reserve(more.length);
    System.arraycopy(more, 0, words, size, more.length);
    size += more.length;
  }

  public void add(TransferWords.Binding view) {
    add(view.dtype());
    add(view.shape().length);
    add(view.address());
    add(view.low());
    add(view.bytes());
    add(view.shape());
    add(view.strides());
  }

  public void into(LongBuffer all) {
    all.put(words, 0, size);
  }

  private void reserve(int more) {
    int needed = checked((long) size + more);
    if (needed > words.length) {
      words = Arrays.copyOf(words, (int) Math.min(MOST, Math.max(2L * words.length, needed)));
    }
  }

  public static int checked(long size) {
    if (size > MOST) {
      throw new ResourceException(
          "register: this rank's part of the plan exceeds " + MOST + " words; split the transfer");
    }
    return (int) size;
  }
}
