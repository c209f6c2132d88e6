// SPDX-License-Identifier: Apache-2.0
package org.windlass.launch;

import java.time.Duration;
import java.util.List;
import java.util.concurrent.TimeoutException;

/**
 * Exchanges messages between ranks that have no communicator yet. The adapter of a framework that
 * started the ranks implements this interface, for example by the all-gather of a Spark barrier
 * stage. {@link org.windlass.Communicator#meet} uses it to make a communicator. Ranks may be in one
 * process if each rank has its own instance.
 *
 * <p>The exchange is only as private and reliable as the framework's transport. Any process that
 * can send a message there counts as a rank.
 */
public interface Rendezvous {
  /** Returns the number of this rank, from 0. */
  int rank();

  /** Returns the number of ranks, at least 1. It is the same on all ranks. */
  int size();

  /**
   * Collective. Returns the messages of all ranks in rank order, once every rank has sent its own.
   *
   * @param own this rank's message: a few hundred bytes, or up to 4 KiB if ranks are on several
   *     hosts
   * @param deadline how long the exchange may take
   * @throws TimeoutException if the deadline passes before all ranks have called
   * @throws InterruptedException if the calling thread is interrupted during the exchange
   * @throws Exception if the exchange fails for another reason. The caller of {@link
   *     org.windlass.Communicator#meet} gets unchecked exceptions unchanged
   */
  List<byte[]> allGather(byte[] own, Duration deadline) throws Exception;
}
