// SPDX-License-Identifier: Apache-2.0
package org.windlass.testing;

import static org.junit.jupiter.api.Assumptions.assumeTrue;

import java.io.IOException;
import java.util.List;
import java.util.concurrent.TimeUnit;

/** The Python that guests of the tests run in. */
final class Python {
  private static final List<String> CANDIDATES = List.of("python3", "/usr/bin/python3");

  /** Looked for once. */
  private static final String FOUND =
      CANDIDATES.stream().filter(Python::hasNumpy).findFirst().orElse(null);

  private Python() {}

  /** Its command; the test is skipped where there is none with numpy. */
  static String required() {
    assumeTrue(FOUND != null, "no python3 that has numpy: apt-get install python3-numpy");
    return FOUND;
  }

  private static boolean hasNumpy(String python) {
    try {
      Process process =
          new ProcessBuilder(python, "-c", "import numpy")
              .redirectErrorStream(true)
              .redirectOutput(ProcessBuilder.Redirect.DISCARD)
              .start();
      boolean hasEnded = process.waitFor(60, TimeUnit.SECONDS);
      process.destroyForcibly();
      return hasEnded && process.exitValue() == 0;
    } catch (IOException e) {
      return false;
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
      return false;
    }
  }
}
