// SPDX-License-Identifier: Apache-2.0
package org.windlass.plan;

/** The ways in which the bytes of a {@link Route} get from its source to its targets. */
public enum Transport {
  /** The source sends to one other rank. */
  P2P,
  /** The source sends to several other ranks, which need the same region. */
  BROADCAST,
  /** The rank copies from its own source to its own target. */
  LOCAL,
  /**
   * This rank sends nothing. Another rank reads this rank's tensor, and sends the reduced result.
   */
  NONE
}
