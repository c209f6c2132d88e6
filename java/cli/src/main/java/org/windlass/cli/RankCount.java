// SPDX-License-Identifier: Apache-2.0
package org.windlass.cli;

import org.windlass.error.InvalidArgumentException;

/** The number of ranks that a command runs, each a thread or a process of its own. */
public final class RankCount {
  /** What some operations do grows with the square of the ranks. */
  public static final int MOST = 64;

  private RankCount() {}

  /**
   * Checks a number of ranks.
   *
   * @param given what says it, as messages begin
   */
  public static void require(String given, int ranks) {
    if (ranks < 1 || ranks > MOST) {
      throw new InvalidArgumentException(
          given + " " + ranks + ": 1 to " + MOST + " ranks run here");
    }
  }
}
