// SPDX-License-Identifier: Apache-2.0
package org.windlass.internal.call;

import java.nio.LongBuffer;
import org.jspecify.annotations.Nullable;
import org.windlass.internal.NativeMemory;
import org.windlass.internal.Structs;

/**
 * Native memory for up to four lists of one call, numbered from 0. Each list has one value for each
 * rank. Only the thread in that call uses it.
 */
public final class RankLists {
  private static final int LISTS = 4;

  private final int size;
  private final LongBuffer values;
  private final long address;

  RankLists(int size) {
    this.size = size;
    var buffer = Structs.allocate(LISTS * size * Long.BYTES);
    this.values = buffer.asLongBuffer();
    this.address = NativeMemory.address(buffer);
  }

  /** Returns the address of list number {@code slot}. */
  public long address(int slot) {
    return address + (long) slot * size * Long.BYTES;
  }

  /** Copies {@code list} to list number {@code slot}. Returns its address, or 0 for null. */
  public long put(int slot, long @Nullable [] list) {
    if (list == null) {
      return 0;
    }
    values.put(slot * size, list);
    return address(slot);
  }

  /** Copies list number {@code slot} to {@code list}. */
  public void get(int slot, long[] list) {
    values.get(slot * size, list, 0, size);
  }
}
