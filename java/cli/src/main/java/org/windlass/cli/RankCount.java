// SPDX-License-Identifier: Apache-2.0
package org.windlass.cli;

import org.windlass.error.InvalidArgumentException;

/** Checks the number of ranks that a command runs, as threads or processes. */
public final class RankCount {
  /** Largest number of ranks. The time of some operations grows with the square of this number. */
  public static final int MOST = 64;

  private RankCount() {}

  public static void require(String given, int ranks) {
    if (ranks < 1 || ranks > MOST) {
      throw new InvalidArgumentException(
          given + " " + ranks + ": 1 to " + MOST + " ranks run here");
    }
  }
}
