// SPDX-License-Identifier: Apache-2.0
package org.windlass.link;

import java.io.DataInputStream;
import java.io.DataOutputStream;
import java.util.List;
import java.util.Set;
import java.util.TreeSet;
import java.util.UUID;
import org.windlass.error.MismatchException;
import org.windlass.internal.Deadline;
import org.windlass.internal.Native;
import org.windlass.internal.call.Gathered;
import org.windlass.internal.store.Encoding;
import org.windlass.internal.store.MalformedException;

/**
 * Inner links. A link between two jobs is an inner link if the transfers of both jobs also move
 * over other links. Transfers that are connected by inner links decide together whether a version
 * moves ({@link Tickets}).
 *
 * <p>A job with one link needs no vote: it moves or takes back a version if the job at the other
 * end does.
 */
final class InnerLinks {
  private InnerLinks() {}

  /**
   * Returns the number of rounds after which the vote of each connected transfer has reached all
   * others: the number of these transfers minus one. All of them get the same result. Returns 0
   * without inner links. Collective over the inner links.
   *
   * <p>Each transfer has a random number. In each round, neighbours exchange the numbers that they
   * know. After r rounds, a transfer knows more than r numbers, or all of them. So all transfers
   * run the same number of rounds: one for each transfer.
   */
  static int rounds(List<LinkPart> parts, Deadline until) {
    List<LinkPart> inner = parts.stream().filter(LinkPart::isInner).toList();
    if (inner.isEmpty()) {
      return 0;
    }
    Set<Long> known = new TreeSet<>();
    if (inner.get(0).handover().side().rank() == 0) {
      known.add(UUID.randomUUID().getMostSignificantBits());
    }
    int round = 0;
    do {
      inner.forEach(part -> exchange(part, known, until));
      round++;
    } while (round < known.size());
    return known.size() - 1;
  }

  private static void exchange(LinkPart part, Set<Long> known, Deadline until) {
    byte[] own = Encoding.bytes(out -> Encoding.putList(out, known, DataOutputStream::writeLong));
    byte[][] all =
        Gathered.bytes(
            part.link().communicator(), until::leftNs, Native.WL_OP_LINK_REGISTER, own);
    try {
      for (byte[] each : all) {
        known.addAll(
            Encoding.read(each, in -> Encoding.list(in, DataInputStream::readLong)));
      }
    } catch (MalformedException e) {
      throw new MismatchException("the transfers of a peer can't be read: " + e.getMessage(), e);
    }
  }
}
