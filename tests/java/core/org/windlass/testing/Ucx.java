// SPDX-License-Identifier: Apache-2.0
package org.windlass.testing;

import static org.junit.jupiter.api.Assumptions.assumeTrue;

import java.nio.file.Files;
import java.nio.file.Path;

/** What carries bytes between hosts, as this build has it. */
public final class Ucx {
  private Ucx() {}

  /** Whether it found UCX's headers. */
  public static boolean isThere() {
    return Files.exists(
        Path.of(System.getProperty("org.windlass.library.path"), "libwindlass-ucx.so"));
  }

  /** Skips a test without it. */
  public static void require() {
    assumeTrue(isThere(), "this build found no headers of UCX: Debian's libucx-dev");
  }
}
