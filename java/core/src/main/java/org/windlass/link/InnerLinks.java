// SPDX-License-Identifier: Apache-2.0
package org.windlass.link;

import java.io.DataInputStream;
import java.io.DataOutputStream;
import java.util.ArrayList;
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
 * Inner links: links between two jobs whose transfers both move over other links too. Transfers that
 * inner links connect decide together whether a version moves ({@link Tickets}).
 *
 * <p>A job with one link needs no vote. It moves or takes back what the job at the other end does.
 */
final class InnerLinks {
  /**
   * What one side of a link says in a round.
   *
   * @param isAll true if no transfer is missing in {@code transfers}
   * @param transfers random numbers of the transfers of which the side knows
   */
  private record Known(boolean isAll, Set<Long> transfers) {
    byte[] toBytes() {
      return Encoding.bytes(
          out -> {
            out.writeBoolean(isAll);
            Encoding.putList(out, transfers, DataOutputStream::writeLong);
          });
    }

    static Known of(byte[] bytes) {
      try {
        return Encoding.read(
            bytes,
            in ->
                new Known(
                    in.readBoolean(),
                    new TreeSet<>(Encoding.list(in, DataInputStream::readLong))));
      } catch (MalformedException e) {
        throw new MismatchException("the transfers of a peer can't be read: " + e.getMessage(), e);
      }
    }
  }

  private InnerLinks() {}

  /**
   * Returns how many rounds of votes take a vote from any connected transfer to any other: one less
   * than there are such transfers. All of them get the same. 0 without inner links. Collective over
   * the inner links.
   *
   * <p>In each round, a transfer tells its neighbours of which transfers it knows. So after round r,
   * it knows those at most r links away, and it knows all of them if a round brings no other. It
   * tells that its neighbours, which then know all too.
   */
  static int rounds(List<LinkPart> parts, Deadline until) {
    List<LinkPart> left = new ArrayList<>(parts);
    left.removeIf(part -> !part.isInner());
    Known known = new Known(false, new TreeSet<>());
    if (!left.isEmpty() && left.get(0).handover().side().rank() == 0) {
      known.transfers.add(UUID.randomUUID().getMostSignificantBits());
    }
    while (!left.isEmpty()) {
      Set<Long> next = new TreeSet<>(known.transfers);
      boolean isAll = known.isAll;
      for (LinkPart part : List.copyOf(left)) {
        boolean isOthersAll = exchange(part, known, next, until);
        if (known.isAll || isOthersAll) {
          left.remove(part);
        }
        isAll |= isOthersAll;
      }
      known = new Known(isAll || next.size() == known.transfers.size(), next);
    }
    return Math.max(0, known.transfers.size() - 1);
  }

  /** Adds the other side's transfers to {@code next}. Returns true if those are all. */
  private static boolean exchange(LinkPart part, Known known, Set<Long> next, Deadline until) {
    byte[][] all =
        Gathered.bytes(
            part.link().communicator(), until::leftNs, Native.WL_OP_LINK_REGISTER,
            known.toBytes());
    boolean isOthersAll = false;
    for (int rank = 0; rank < all.length; rank++) {
      Known each = Known.of(all[rank]);
      next.addAll(each.transfers);
      isOthersAll |= each.isAll && part.link().ranks().sends(rank) != part.link().sends();
    }
    return isOthersAll;
  }
}
