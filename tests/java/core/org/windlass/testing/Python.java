// SPDX-License-Identifier: Apache-2.0
package org.windlass.testing;

import static java.nio.charset.StandardCharsets.UTF_8;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import java.io.IOException;
import java.util.List;
import java.util.Objects;
import java.util.concurrent.TimeUnit;

/** The Python that ranks of the tests run in. */
final class Python {
  private static final List<String> CANDIDATES = List.of("python3", "/usr/bin/python3");

  /** Path of the interpreter, null if none has numpy. Looked for once. */
  private static final String FOUND =
      CANDIDATES.stream().map(Python::withNumpy).filter(Objects::nonNull).findFirst().orElse(null);

  private Python() {}

  /** Its command; the test is skipped where there is none with numpy. */
  static String required() {
    assumeTrue(FOUND != null, "no python3 that has numpy: apt-get install python3-numpy");
    return FOUND;
  }

  /**
   * Returns the interpreter behind a command, null if it lacks numpy. The command may be a script
   * of a version manager, which takes longer than the interpreter's own start.
   */
  private static String withNumpy(String python) {
    try {
      Process process =
          new ProcessBuilder(python, "-c", "import numpy, sys; print(sys.executable)")
              .redirectError(ProcessBuilder.Redirect.DISCARD)
              .start();
      if (!process.waitFor(120, TimeUnit.SECONDS)) {
        process.destroyForcibly();
        return null;
      }
      String path = new String(process.getInputStream().readAllBytes(), UTF_8).strip();
      return process.exitValue() != 0 ? null : path.isEmpty() ? python : path;
    } catch (IOException e) {
      return null;
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
      return null;
    }
  }
}
