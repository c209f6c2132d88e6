// SPDX-License-Identifier: Apache-2.0
package org.windlass.cli;

import org.windlass.InvalidArgumentException;
import org.windlass.UnsupportedException;

/** The ways to run a bucket, as {@code --mode} names them. */
final class Modes {
  private Modes() {}

  /** Checks that the mode is direct, which is the one that this build has. */
  static void requireDirect(String mode) {
    if (mode.equals("staged")) {
      throw new UnsupportedException("--mode staged: not in this build, whose transfers are direct");
    }
    if (!mode.equals("direct")) {
      throw new InvalidArgumentException("--mode " + mode + ": direct or staged");
    }
  }
}
