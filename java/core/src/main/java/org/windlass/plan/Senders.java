// SPDX-License-Identifier: Apache-2.0
package org.windlass.plan;

/**
 * The members of a source cell that send parts of it, in the order of their {@link Shares}. They
 * have consecutive numbers; member 0 follows the last one.
 *
 * @param first member that has the first share
 * @param count number of members that send
 * @param members number of members of the cell
 */
record Senders(int first, int count, int members) {
  /** Returns all members. The plan's turn selects the member that has the first share. */
  static Senders all(int members, int turn) {
    return new Senders(turn % members, members, members);
  }

  static Senders sole(int member, int members) {
    return new Senders(member, 1, members);
  }

  int member(int share) {
    return (first + share) % members;
  }

  /** Returns the share of a member, or -1 if the member does not send. */
  int share(int member) {
    int share = Math.floorMod(member - first, members);
    return share < count ? share : -1;
  }
}
