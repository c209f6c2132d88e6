// SPDX-License-Identifier: Apache-2.0
package org.windlass.internal.call;

import java.nio.LongBuffer;
import org.windlass.internal.NativeMemory;
import org.windlass.internal.Structs;

/**
 * Native memory for the lists of one call: up to four, of one value for each rank. Whoever is in
 * that call uses it alone.
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

  /** Address of list number {@code slot}. */
  public long address(int slot) {
    return address + (long) slot * size * Long.BYTES;
  }

  /** Address of list number {@code slot}, which is made to hold {@code list}; 0 for null. */
  public long put(int slot, long[] list) {
    if (list == null) {
      return 0;
    }
    values.put(slot * size, list);
    return address(slot);
  }

  /** Copies what list number {@code slot} holds to {@code list}. */
  public void get(int slot, long[] list) {
    values.get(slot * size, list, 0, size);
  }
}
