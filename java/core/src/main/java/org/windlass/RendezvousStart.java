// SPDX-License-Identifier: Apache-2.0
package org.windlass;

import java.time.Duration;
import java.util.Objects;
import org.windlass.error.InvalidArgumentException;
import org.windlass.internal.Native;
import org.windlass.internal.rendezvous.AllGatherStart;
import org.windlass.internal.rendezvous.Host;
import org.windlass.launch.Rendezvous;

final class RendezvousStart {
  private RendezvousStart() {}

  static long join(Rendezvous rendezvous, CommunicatorOptions options, Duration deadline) {
    int rank = rendezvous.rank();
    int size = rendezvous.size();
    if (size < 1 || size > Native.WL_MAX_RANKS || rank < 0 || rank >= size) {
      throw new InvalidArgumentException(
          "meet: the rendezvous has rank " + rank + " of " + size + "; there are 1 to "
              + Native.WL_MAX_RANKS + " ranks, from rank 0 on");
    }
    return new AllGatherStart(
            (own, isLast, limit) ->
                rendezvous.allGather(Objects.requireNonNull(own.get(rank)), limit),
            rank,
            size,
            options.config(),
            Host.of(System.getenv()),
            () -> LocalHandles.create(size, options),
            deadline)
        .join();
  }
}
