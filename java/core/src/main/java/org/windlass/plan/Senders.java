// SPDX-License-Identifier: Apache-2.0
package org.windlass.plan;

/**
 * The members of a source cell that send it; {@link Grid} defines members. They have consecutive
 * numbers; member 0 follows the last one. Each has one of the {@link Shares}, in the same order.
 *
 * @param first the member that has share 0
 * @param count number of members that send
 * @param members number of members of the cell
 */
record Senders(int first, int count, int members) {
  /** Returns all members as senders; member {@code turn % members} has share 0. */
  static Senders all(int members, int turn) {
    return new Senders(turn % members, members, members);
  }

  static Senders sole(int member, int members) {
    return new Senders(member, 1, members);
  }

  int member(int share) {
    return (first + share) % members;
  }

  /** Returns the index of the share of the data that a member sends, or -1 if it sends none. */
  int share(int member) {
    int share = Math.floorMod(member - first, members);
    return share < count ? share : -1;
  }
}
