// SPDX-License-Identifier: Apache-2.0
package org.windlass.launch;

import java.time.Duration;
import java.util.List;
import java.util.concurrent.TimeoutException;

/**
 * A rank's way to tell the others something before they have a communicator: what a framework that
 * has started all of them offers, such as the all-gather of a barrier stage of Spark. {@link
 * org.windlass.Communicator#meet} makes a communicator by it. Ranks may live in one
 * process, each with its own.
 *
 * <p>What is told is as private and as sound as that way: whoever speaks there counts as a rank.
 */
public interface Rendezvous {
  /** Which rank this one is, from 0 on. */
  int rank();

  /** How many ranks there are, at least 1: the same on all of them. */
  int size();

  /**
   * Collective: what each rank has said, in rank order, once all have.
   *
   * @param own what this one says, some hundred bytes; up to 4 KiB where ranks live on several
   *     hosts
   * @param deadline how long it may take
   * @throws TimeoutException if that passes before all have come
   * @throws InterruptedException if the calling thread is interrupted meanwhile
   * @throws Exception if it fails otherwise; what is unchecked reaches the caller of {@link
   *     org.windlass.Communicator#meet} as it is
   */
  List<byte[]> allGather(byte[] own, Duration deadline) throws Exception;
}
