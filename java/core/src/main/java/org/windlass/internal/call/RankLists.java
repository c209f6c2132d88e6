// SPDX-License-Identifier: Apache-2.0
package org.windlass.internal.call;

import java.nio.LongBuffer;
import org.jspecify.annotations.Nullable;
import org.windlass.internal.NativeMemory;
import org.windlass.internal.Structs;

/**
 * Native memory for up to four lists that are arguments of one call, numbered from 0. Each list has
 * one value for each rank. Only the thread whose call is in progress uses it.
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

  public long address(int slot) {
    return address + (long) slot * size * Long.BYTES;
  }

  /** Copies {@code list} to the native list {@code slot}. Returns its address, or 0 for null. */
  public long put(int slot, long @Nullable [] list) {
    if (list == null) {
      return 0;
    }
    values.put(slot * size, list);
    return address(slot);
  }

  public void get(int slot, long[] list) {
    values.get(slot * size, list, 0, size);
  }
}
