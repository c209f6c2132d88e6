// SPDX-License-Identifier: Apache-2.0
package org.windlass.cli;

import java.time.Duration;
import org.jspecify.annotations.Nullable;
import org.windlass.error.InvalidArgumentException;
import org.windlass.kernel.Target;
import picocli.CommandLine.Option;

/** Command-line options of every command that moves data. */
class MovingOptions {
  @Option(
      names = "--target",
      paramLabel = "TARGET",
      completionCandidates = Choices.Targets.class,
      description =
          "What runs kernels: ${COMPLETION-CANDIDATES} (default: WINDLASS_TARGET, or sim).")
  private @Nullable String target;

  @Option(
      names = "--deadline",
      paramLabel = "S",
      defaultValue = "60",
      description = "Seconds without progress until it fails (default: ${DEFAULT-VALUE}).")
  private double deadline;

  Target target() {
    Target chosen = target == null ? Target.loaded() : Target.parse(target);
    chosen.use();
    return chosen;
  }

  Duration deadline() {
    return seconds("--deadline", deadline);
  }

  static Duration seconds(String name, double value) {
    if (!(value >= 1e-9 && value <= 1e8)) {
      throw new InvalidArgumentException(name + " " + value + ": not in [1e-9, 1e8] seconds");
    }
    return Duration.ofNanos((long) (value * 1e9));
  }
}
