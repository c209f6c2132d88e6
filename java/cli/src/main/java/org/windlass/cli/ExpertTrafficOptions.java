// SPDX-License-Identifier: Apache-2.0
package org.windlass.cli;

import org.windlass.DType;
import org.windlass.bench.data.ExpertTraffic;
import picocli.CommandLine.Option;

/** Command-line options for the tokens of {@code windlass bench dispatch-combine}. */
final class ExpertTrafficOptions {
  @Option(
      names = "--tokens",
      paramLabel = "T",
      defaultValue = "1024",
      description = "dispatch-combine: tokens a rank (default: ${DEFAULT-VALUE}).")
  private int tokens;

  @Option(
      names = "--hidden",
      paramLabel = "D",
      defaultValue = "4096",
      description = "dispatch-combine: elements a token (default: ${DEFAULT-VALUE}).")
  private int hidden;

  @Option(
      names = "--top-k",
      paramLabel = "K",
      defaultValue = "6",
      description = "dispatch-combine: experts a token (default: ${DEFAULT-VALUE}).")
  private int topK;

  @Option(
      names = "--experts",
      paramLabel = "E",
      defaultValue = "16",
      description = "dispatch-combine: experts a rank (default: ${DEFAULT-VALUE}).")
  private int experts;

  ExpertTraffic traffic(int ranks, DType dtype) {
    return new ExpertTraffic(
        ranks, tokens, hidden, topK, Math.multiplyExact(ranks, experts), dtype);
  }
}
