// SPDX-License-Identifier: Apache-2.0
package org.windlass.plan;

/** The ways in which the bytes of a {@link Route} cross ranks. */
public enum Transport {
  /** From one rank to one other rank. */
  P2P,
  /** From one rank to several other ranks that need the same region. */
  BROADCAST,
  /** Within one rank. */
  LOCAL,
  /** Nowhere: the rank only takes part in a reduction that another rank sends. */
  NONE
}
