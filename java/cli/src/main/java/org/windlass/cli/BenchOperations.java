// SPDX-License-Identifier: Apache-2.0
package org.windlass.cli;

import java.util.List;
import java.util.Map;
import org.windlass.error.InvalidArgumentException;
import picocli.CommandLine.Model.OptionSpec;
import picocli.CommandLine.ParseResult;

/** Lists the operations of {@code windlass bench}, with the options and algorithms of each. */
final class BenchOperations {
  static final String ALL =
      "barrier, put, accumulate, send-receive, all-to-all, broadcast, all-gather, reduce-scatter, all-reduce,"
          + " dispatch-combine, redistribute, cast";

  static final String BUFFERS = "window, plain, device";

  private static final String COLLECTIVES =
      "all-to-all, broadcast, all-gather, reduce-scatter, all-reduce";
  private static final String SIZED = "put, accumulate, send-receive, " + COLLECTIVES + ", cast";
  private static final String BUFFERED = SIZED + ", redistribute, dispatch-combine";

  /** Options that only some operations take, keyed by the list of those operations. */
  private static final Map<String, String> OPTIONS =
      Map.of(
          SIZED, "--bytes",
          BUFFERED, "--dtype, --buffers",
          COLLECTIVES, TuneGridsOption.NAME,
          "redistribute", "--from, --to, --shape, --mode",
          "redistribute, cast", "--wire",
          "dispatch-combine", "--tokens, --hidden, --top-k, --experts");

  private BenchOperations() {}

  static void requireFitting(String op, ParseResult parsed) {
    for (OptionSpec option : parsed.matchedOptions()) {
      OPTIONS.forEach(
          (operations, options) -> {
            if (isIn(options, option.longestName()) && !isIn(operations, op)) {
              throw new InvalidArgumentException(
                  "bench " + op + ": " + option.longestName() + " is for " + operations);
            }
          });
    }
  }

  private static boolean isIn(String list, String word) {
    return List.of(list.split(", ")).contains(word);
  }

  static void requireAlgorithm(String op, String algorithm) {
    String known =
        switch (op) {
          case "all-to-all" -> "auto, push, pull";
          case "broadcast" -> "auto, staged";
          case "all-reduce" -> "auto, two-phase, one-phase, ring, bidirectional-ring";
          default -> "auto";
        };
    requireOneOf("--algorithm", algorithm, known);
  }

  static void requireOneOf(String option, String value, String known) {
    if (!isIn(known, value)) {
      throw new InvalidArgumentException(option + ": '" + value + "' is none of " + known);
    }
  }
}
