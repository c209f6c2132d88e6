// SPDX-License-Identifier: Apache-2.0
package org.windlass.link;

import static org.assertj.core.api.Assertions.assertThat;

import java.lang.reflect.Field;
import java.time.Duration;
import java.util.List;
import org.windlass.internal.Deadline;
import org.windlass.transfer.Transfer;

/** Takes a version back over one link, as a rank does whose other links have none. */
public final class TakenBack {
  private TakenBack() {}

  /** The first version of the transfer. */
  public static void takeBack(LinkTransfer transfer, Duration deadline) {
    LinkPart part = part(transfer);
    Deadline until = Deadline.of(deadline);
    Tickets tickets = Tickets.take(List.of(part), 0, 1, until);
    assertThat(tickets.moves()).isEqualTo(1);
    long[] version = {Transfer.ANY_VERSION};
    part.move(0, Transfer.FINISHED, version, tickets.until());
    assertThat(version).containsExactly(Transfer.FINISHED);
    assertThat(part.link().isFinished()).isFalse();
  }

  static LinkPart part(LinkTransfer transfer) {
    try {
      Field parts = LinkTransfer.class.getDeclaredField("parts");
      parts.setAccessible(true);
      return ((LinkParts) parts.get(transfer)).all().get(0);
    } catch (ReflectiveOperationException e) {
      throw new AssertionError(e);
    }
  }
}
