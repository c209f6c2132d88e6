// SPDX-License-Identifier: Apache-2.0
package org.windlass.cli;

import java.util.Optional;
import java.util.OptionalLong;
import org.jspecify.annotations.Nullable;
import org.windlass.DType;
import org.windlass.bench.data.ByteSize;
import org.windlass.error.InvalidArgumentException;
import org.windlass.reshard.Reshard;
import picocli.CommandLine.Option;

/** Command-line options for the layouts at both ends, and for the dtype between them. */
final class LayoutOptions {
  @Option(
      names = "--from",
      paramLabel = "LAYOUT",
      description = "Source layout, such as 2x4:P,S0.")
  private @Nullable String from;

  @Option(
      names = "--to",
      paramLabel = "LAYOUT",
      description = "Target layout, such as 1x3@8:R,S1.")
  private @Nullable String to;

  @Option(
      names = "--wire",
      paramLabel = "DTYPE",
      completionCandidates = Choices.Floats.class,
      description = "Dtype of floating values as they are sent: ${COMPLETION-CANDIDATES}.")
  private @Nullable String wire;

  Optional<String> from() {
    return Optional.ofNullable(from);
  }

  Optional<String> to() {
    return Optional.ofNullable(to);
  }

  Optional<DType> wire() {
    return Optional.ofNullable(wire).map(DType::parse);
  }

  Optional<DType> castWire() {
    return castable("--wire", wire);
  }

  /** Parses a dtype for floating tensors. Throws if a reshard cannot cast to the dtype. */
  static Optional<DType> castable(String option, @Nullable String value) {
    try {
      Optional<DType> dtype = Optional.ofNullable(value).map(DType::parse);
      dtype.ifPresent(Reshard.fromStoredLayouts()::dtype);
      return dtype;
    } catch (InvalidArgumentException refused) {
      throw new InvalidArgumentException(option + " " + refused.getMessage(), refused);
    }
  }

  static OptionalLong bytes(String option, @Nullable String value) {
    return value == null ? OptionalLong.empty() : OptionalLong.of(ByteSize.parse(option, value));
  }

  static <T> T require(String option, Optional<T> value, String takes) {
    return value.orElseThrow(() -> new InvalidArgumentException(option + " is missing; " + takes));
  }
}
