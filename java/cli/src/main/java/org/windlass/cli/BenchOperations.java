// SPDX-License-Identifier: Apache-2.0
package org.windlass.cli;

import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.stream.Stream;
import org.windlass.bench.side.Operation;
import org.windlass.error.InvalidArgumentException;
import picocli.CommandLine.Model.OptionSpec;
import picocli.CommandLine.ParseResult;

/** Lists the operations of {@code windlass bench}, with the options and algorithms of each. */
final class BenchOperations {
  static final String ALL =
      "barrier, put, accumulate, all-to-all, broadcast, all-gather, reduce-scatter, all-reduce,"
          + " dispatch-combine, redistribute and cast";

  /** Operations with buffers whose size is an option. */
  private static final List<String> SIZED =
      List.of(
          "put",
          "accumulate",
          "all-to-all",
          "broadcast",
          "all-gather",
          "reduce-scatter",
          "all-reduce",
          "cast");

  /** Operations that have buffers. */
  private static final List<String> BUFFERED =
      Stream.concat(SIZED.stream(), Stream.of("redistribute", "dispatch-combine")).toList();

  private static final Map<String, List<String>> ONLY_FOR =
      Map.ofEntries(
          Map.entry("--bytes", SIZED),
          Map.entry("--dtype", BUFFERED),
          Map.entry("--buffers", BUFFERED),
          Map.entry(
              TuneGridsOption.NAME,
              Stream.of(Operation.values()).map(Operation::toString).toList()),
          Map.entry("--from", List.of("redistribute")),
          Map.entry("--to", List.of("redistribute")),
          Map.entry("--shape", List.of("redistribute")),
          Map.entry("--mode", List.of("redistribute")),
          Map.entry("--wire", List.of("redistribute", "cast")),
          Map.entry("--tokens", List.of("dispatch-combine")),
          Map.entry("--hidden", List.of("dispatch-combine")),
          Map.entry("--top-k", List.of("dispatch-combine")),
          Map.entry("--experts", List.of("dispatch-combine")));

  private BenchOperations() {}

  /** Returns the algorithms that the operation has in addition to {@code auto}. */
  private static List<String> algorithms(String op) {
    return switch (op) {
      case "all-to-all" -> List.of("push", "pull");
      case "broadcast" -> List.of("staged");
      case "all-reduce" -> List.of("two-phase", "one-phase", "ring", "bidirectional-ring");
      default -> List.of();
    };
  }

  /** Refuses options of other operations. */
  static void requireFitting(String op, ParseResult parsed) {
    for (OptionSpec option : parsed.matchedOptions()) {
      List<String> operations = ONLY_FOR.getOrDefault(option.longestName(), List.of(op));
      if (!operations.contains(op)) {
        throw new InvalidArgumentException(
            "bench " + op + ": " + option.longestName() + " is for "
                + String.join(", ", operations));
      }
    }
  }

  /** Refuses an algorithm that the operation does not have. */
  static void requireAlgorithm(String op, String algorithm) {
    List<String> known = new ArrayList<>(List.of("auto"));
    known.addAll(algorithms(op));
    requireOneOf("--algorithm", algorithm, known);
  }

  static void requireOneOf(String option, String value, List<String> known) {
    if (!known.contains(value)) {
      throw new InvalidArgumentException(
          option + ": '" + value + "' is none of " + String.join(", ", known));
    }
  }
}
