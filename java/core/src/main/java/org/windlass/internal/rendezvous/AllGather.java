// SPDX-License-Identifier: Apache-2.0
package org.windlass.internal.rendezvous;

import java.time.Duration;
import java.util.List;
import java.util.Map;
import java.util.concurrent.TimeoutException;

/** Exchanges data between the ranks that start a communicator together, before they have one. */
@FunctionalInterface
public interface AllGather {
  /**
   * Takes part in a round. Every process of the start must do so.
   *
   * @param own value of each rank of this process
   * @param isLast true if no round follows
   * @return the value of each rank, in rank order
   * @throws OthersGoneException if the other ranks can't join any more
   * @throws TimeoutException if {@code limit} passes before the round is complete
   */
  List<byte[]> round(Map<Integer, byte[]> own, boolean isLast, Duration limit) throws Exception;

  /** Ends this process's part in a start that is not over. The other ranks then fail at once. */
  default void quit() {}
}
