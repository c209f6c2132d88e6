// SPDX-License-Identifier: Apache-2.0
package org.windlass.cli;

import java.io.File;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.NoSuchElementException;
import java.util.Scanner;

/** Provides the properties of the terminal to which an output may go. */
final class Terminal {
  /** File descriptors of the standard outputs. */
  static final int OUTPUT = 1;

  static final int ERROR = 2;

  private static final int USUAL_COLUMNS = 80;

  private Terminal() {}

  /** Returns the width of the process's terminal in characters, or 80 if it is unknown. */
  static int columns() {
    try {
      Process size =
          new ProcessBuilder("stty", "size")
              .redirectInput(new File("/dev/tty"))
              .redirectError(ProcessBuilder.Redirect.DISCARD)
              .start();
      try (Scanner words = new Scanner(size.getInputStream(), StandardCharsets.US_ASCII)) {
        words.nextInt();
        int columns = words.nextInt();
        return columns > 0 ? columns : USUAL_COLUMNS;
      }
    } catch (IOException | NoSuchElementException unknown) {
      return USUAL_COLUMNS;
    }
  }

  /** Returns true if an output may have colours: it is a terminal, and NO_COLOR is not set. */
  static boolean isColoured(int descriptor) {
    return System.getenv().getOrDefault("NO_COLOR", "").isEmpty() && redraws(descriptor);
  }

  /** Returns true if an output is a terminal on which the cursor can be moved. */
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
