// SPDX-License-Identifier: Apache-2.0
package org.windlass.internal.transfer;

import java.nio.ByteBuffer;
import java.nio.LongBuffer;
import java.nio.charset.StandardCharsets;
import java.util.List;
import java.util.function.IntFunction;
import org.windlass.Communicator;
import org.windlass.error.MismatchException;
import org.windlass.internal.Deadline;
import org.windlass.internal.Fingerprint;
import org.windlass.internal.call.Gathered;

/** Checks that all ranks of a communicator make the same call with equal arguments. */
public final class Alike {
  private Alike() {}

  /**
   * Checks that all ranks have the same fingerprint. If they differ, all ranks throw, and the
   * communicator stays usable. Collective.
   *
   * @param operation number in the C ABI of the operation that contains this check
   * @param own fingerprint of this rank's arguments
   * @param here describes this rank's call after "rank 0", such as {@code opens link 'a'}
   * @throws MismatchException if two ranks differ; the message has {@code here} of both
   */
  public static void require(
      Communicator communicator, Deadline until, int operation, Fingerprint own, String here) {
    int other = unlikeFirst(communicator, until, operation, own);
    if (other != 0) {
      throw mismatch(communicator, until, operation, other, here);
    }
  }

  /**
   * Checks that all ranks have equal lists of items, in the same order. If the lists differ, all
   * ranks throw, and the communicator stays usable. Collective.
   *
   * @param operation number in the C ABI of the operation that contains this check
   * @param items a fingerprint of each item
   * @param here describes this rank's item with a given index, or says that there is no such item
   * @throws MismatchException if two ranks differ; the message has the first item in which they
   *     differ
   */
  public static void require(
      Communicator communicator,
      Deadline until,
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

  private static int unlikeFirst(
      Communicator communicator, Deadline until, int operation, Fingerprint own) {
    long[][] all = Gathered.words(communicator, until::leftNs, operation, own.value());
    int other = 1;
    while (other < all.length && all[other][0] == all[0][0]) {
      other++;
    }
    return other == all.length ? 0 : other;
  }

  private static MismatchException mismatch(
      Communicator communicator, Deadline until, int operation, int other, String here) {
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
