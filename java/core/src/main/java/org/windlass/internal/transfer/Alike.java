// SPDX-License-Identifier: Apache-2.0
package org.windlass.internal.transfer;

import java.nio.ByteBuffer;
import java.nio.LongBuffer;
import java.nio.charset.StandardCharsets;
import java.util.List;
import java.util.function.IntFunction;
import org.windlass.Communicator;
import org.windlass.error.MismatchException;
import org.windlass.internal.Fingerprint;
import org.windlass.internal.call.Gathered;

/** Checks that all ranks of a communicator do the same. */
public final class Alike {
  private Alike() {}

  /**
   * Returns if all ranks do the same. Otherwise all ranks throw, and the communicator stays usable.
   * Collective.
   *
   * @param operation the C ABI's number of the operation that contains this check
   * @param own fingerprint of this rank's action
   * @param here text of this rank's action, as in "rank 0 ..."
   * @throws MismatchException if two ranks differ; the message says how
   */
  public static void require(
      Communicator communicator, Until until, int operation, Fingerprint own, String here) {
    int other = unlikeFirst(communicator, until, operation, own);
    if (other != 0) {
      throw mismatch(communicator, until, operation, other, here);
    }
  }

  /**
   * Returns if all ranks have the same list of items, in one order. Otherwise all ranks throw.
   *
   * @param items a fingerprint of each item
   * @param here returns this rank's action for the item of an index, or that it has no such item.
   *     It is called with the index of any rank's item.
   * @throws MismatchException if two ranks differ; the message describes the first different item
   */
  public static void require(
      Communicator communicator,
      Until until,
      int operation,
      long[] items,
      IntFunction<String> here) {
    Fingerprint whole = new Fingerprint();
    for (long item : items) {
      whole.add(item);
    }
    int other = unlikeFirst(communicator, until, operation, whole);
    if (other == 0) {
      return;
    }
    byte[] own = new byte[items.length * Long.BYTES];
    ByteBuffer.wrap(own).asLongBuffer().put(items);
    byte[][] lists = Gathered.bytes(communicator, until::leftNs, operation, own);
    LongBuffer first = ByteBuffer.wrap(lists[0]).asLongBuffer();
    int differs = first.mismatch(ByteBuffer.wrap(lists[other]).asLongBuffer());
    throw mismatch(communicator, until, operation, other, here.apply(differs));
  }

  /** Returns the first rank that differs from rank 0; 0 if none does. */
  private static int unlikeFirst(
      Communicator communicator, Until until, int operation, Fingerprint own) {
    long[][] all = Gathered.words(communicator, until::leftNs, operation, own.value());
    int other = 1;
    while (other < all.length && all[other][0] == all[0][0]) {
      other++;
    }
    return other == all.length ? 0 : other;
  }

  private static MismatchException mismatch(
      Communicator communicator, Until until, int operation, int other, String here) {
    byte[] text = here.getBytes(StandardCharsets.UTF_8);
    byte[][] texts = Gathered.bytes(communicator, until::leftNs, operation, text);
    return new MismatchException(
        "rank 0 " + new String(texts[0], StandardCharsets.UTF_8) + ", rank " + other + " "
            + new String(texts[other], StandardCharsets.UTF_8),
        null,
        "",
        List.of(0, other));
  }
}
