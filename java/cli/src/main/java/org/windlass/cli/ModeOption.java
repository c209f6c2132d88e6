// SPDX-License-Identifier: Apache-2.0
package org.windlass.cli;

import java.util.Arrays;
import java.util.stream.Collectors;
import org.windlass.error.InvalidArgumentException;
import org.windlass.plan.TransferMode;
import picocli.CommandLine.Option;

/** Command-line option for the mode in which bytes move between two layouts. */
final class ModeOption {
  @Option(
      names = "--mode",
      paramLabel = "MODE",
      defaultValue = "direct",
      completionCandidates = Choices.Modes.class,
      description = "How bytes move: ${COMPLETION-CANDIDATES} (default: ${DEFAULT-VALUE}).")
  private String mode;

  TransferMode chosen() {
    return parse(mode, TransferMode.values());
  }

  static TransferMode parse(String mode, TransferMode... known) {
    for (TransferMode each : known) {
      if (each.toString().equals(mode)) {
        return each;
      }
    }
    throw new InvalidArgumentException(
        "--mode " + mode + ": must be "
            + Arrays.stream(known).map(TransferMode::toString).collect(Collectors.joining(" or ")));
  }
}
