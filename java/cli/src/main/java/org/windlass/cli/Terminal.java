// SPDX-License-Identifier: Apache-2.0
package org.windlass.cli;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;

/** The terminal that an output may go to. */
final class Terminal {
  /** The standard ones, by their descriptors. */
  static final int OUTPUT = 1;

  static final int ERROR = 2;

  private Terminal() {}

  /** Whether that output is a terminal that redraws lines. */
  static boolean redraws(int descriptor) {
    String kind = System.getenv("TERM");
    if (kind == null || kind.equals("dumb")) {
      return false;
    }
    try {
      String device = Files.readSymbolicLink(Path.of("/proc/self/fd/" + descriptor)).toString();
      return device.startsWith("/dev/pts/") || device.startsWith("/dev/tty");
    } catch (IOException unknown) {
      return false;
    }
  }
}
