// SPDX-License-Identifier: Apache-2.0
package org.windlass.redistribute;

import java.nio.ByteBuffer;
import java.nio.LongBuffer;
import java.nio.charset.StandardCharsets;
import java.util.List;
import java.util.function.IntFunction;
import org.windlass.Communicator;
import org.windlass.MismatchException;
import org.windlass.internal.Fingerprint;
import org.windlass.internal.Gathered;

/** What the ranks of a communicator have to do alike: a list of items, in one order. */
final class Alike {
  private Alike() {}

  /**
   * Collective: one item alone.
   *
   * @param here what this rank does, as in "rank 0 ..."
   */
  static void require(
      Communicator communicator, Until until, int operation, Fingerprint item, String here) {
    require(communicator, until, operation, new long[] {item.value()}, index -> here);
  }

  /**
   * Collective: returns where all ranks have the same items; else all throw, and go on.
   *
   * @param operation the C ABI's number of the one that this is a step of
   * @param items a fingerprint of each
   * @param here what this rank does with an item, or that it has none of that index, as in "rank 0
   *     ..."
   * @throws MismatchException that says what two ranks do with the first item in which they differ
   */
  static void require(
      Communicator communicator,
      Until until,
      int operation,
      long[] items,
      IntFunction<String> here) {
    Fingerprint whole = new Fingerprint();
    for (long item : items) {
      whole.add(item);
    }
    long[][] all = Gathered.words(communicator, until::leftNs, operation, whole.value());
    int other = 1;
    while (other < all.length && all[other][0] == all[0][0]) {
      other++;
    }
    if (other == all.length) {
      return;
    }
    byte[] own = new byte[items.length * Long.BYTES];
    ByteBuffer.wrap(own).asLongBuffer().put(items);
    byte[][] lists = Gathered.bytes(communicator, until::leftNs, operation, own);
    LongBuffer first = ByteBuffer.wrap(lists[0]).asLongBuffer();
    int differs = first.mismatch(ByteBuffer.wrap(lists[other]).asLongBuffer());
    byte[] text = here.apply(differs).getBytes(StandardCharsets.UTF_8);
    byte[][] texts = Gathered.bytes(communicator, until::leftNs, operation, text);
    throw new MismatchException(
        "rank 0 "
            + new String(texts[0], StandardCharsets.UTF_8)
            + ", rank "
            + other
            + " "
            + new String(texts[other], StandardCharsets.UTF_8),
        null,
        "",
        List.of(0, other));
  }
}
