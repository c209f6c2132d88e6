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
 * Inner links: links between two jobs whose transfers both move over other links too. Transfers
 * that inner links connect decide together whether a version moves ({@link Tickets}).
 *
 * <p>A job with one link needs no vote. It moves or takes back what the job at the other end does.
 */
final class InnerLinks {
  private InnerLinks() {}

  /**
   * Returns how many rounds of votes take a vote from any connected transfer to any other: one less
   * than there are such transfers. All of them get the same. 0 without inner links. Collective over
   * the inner links.
   *
   * <p>Each transfer has a random number. In each round, neighbours exchange the numbers that they
   * know. After r rounds, a transfer knows more than r numbers or all of them. So all transfers
   * take as many rounds as there are transfers.
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
