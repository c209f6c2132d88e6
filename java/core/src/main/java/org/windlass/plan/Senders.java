// SPDX-License-Identifier: Apache-2.0
package org.windlass.plan;

/**
 * The members of a source cell that send what is needed of it, in the order of their {@link
 * Shares}: consecutive ones, the first after the last.
 *
 * @param first whose share is the first
 * @param count how many send
 * @param members of the cell
 */
record Senders(int first, int count, int members) {
  /** All members, of which a plan's turn says whose share comes first. */
  static Senders all(int members, int turn) {
    return new Senders(turn % members, members, members);
  }

  /** One for all. */
  static Senders sole(int member, int members) {
    return new Senders(member, 1, members);
  }

  /** The member whose share is {@code share}. */
  int member(int share) {
    return (first + share) % members;
  }

  /** The share of a member, or -1 if it does not send. */
  int share(int member) {
    int share = Math.floorMod(member - first, members);
    return share < count ? share : -1;
  }
}
