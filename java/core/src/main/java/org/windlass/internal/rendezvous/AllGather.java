// SPDX-License-Identifier: Apache-2.0
package org.windlass.internal.rendezvous;

import java.time.Duration;
import java.util.List;
import java.util.Map;
import java.util.concurrent.TimeoutException;
import org.windlass.error.WindlassException;
import org.windlass.internal.store.OthersGoneException;

/** How the ranks of a start tell one another something before they have a communicator. */
@FunctionalInterface
public interface AllGather {
  /**
   * Takes part in a round, as every process of the start does.
   *
   * @param own what each rank of this process says
   * @param isLast true if no round follows
   * @param limit how long the round may take
   * @return what each rank said, in rank order
   * @throws WindlassException if the round fails for all ranks
   * @throws OthersGoneException if the other ranks come no more
   * @throws TimeoutException if the limit passes first
   */
  List<byte[]> round(Map<Integer, byte[]> own, boolean isLast, Duration limit) throws Exception;

  /** Ends this process's part in a start that is not over: the other ranks fail at once. */
  default void quit() {}
}
