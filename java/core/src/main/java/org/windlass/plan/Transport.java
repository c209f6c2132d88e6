// SPDX-License-Identifier: Apache-2.0
package org.windlass.plan;

/** The ways in which the bytes of a {@link Route} cross ranks. */
public enum Transport {
  /** Sends from one rank to one other rank. */
  P2P,
  /** Sends from one rank to several other ranks that need the same region. */
  BROADCAST,
  /** Copies within one rank. */
  LOCAL,
  /** Sends nothing: another rank reads this rank's tensor for a reduction, and sends the result. */
  NONE
}
