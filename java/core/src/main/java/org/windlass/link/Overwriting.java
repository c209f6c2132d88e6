// SPDX-License-Identifier: Apache-2.0
package org.windlass.link;

import java.util.Arrays;
import java.util.List;
import org.windlass.transfer.Transfer;

/**
 * An in-place call. It overwrites the held version once all ranks have arrived. From then on, a
 * transfer has begun more moves than before the call.
 */
record Overwriting(List<Transfer> transfers, long[] before) {
  static Overwriting of(List<LinkPart> parts, int half) {
    List<Transfer> transfers = parts.stream().map(part -> part.transfer(half)).toList();
    return new Overwriting(transfers, begun(transfers));
  }

  private static long[] begun(List<Transfer> transfers) {
    return transfers.stream().mapToLong(Transfer::begun).toArray();
  }

  boolean hasBegun() {
    return !Arrays.equals(begun(transfers), before);
  }
}
