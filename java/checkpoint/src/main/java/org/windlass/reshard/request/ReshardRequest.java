// SPDX-License-Identifier: Apache-2.0
package org.windlass.reshard.request;

import java.nio.file.Path;
import java.time.Duration;
import java.util.Optional;
import java.util.OptionalLong;
import org.jspecify.annotations.Nullable;
import org.windlass.DType;
import org.windlass.error.InvalidArgumentException;
import org.windlass.layout.Layout;
import org.windlass.plan.TransferMode;

/**
 * Holds the settings of a redistribution, each in a field of its name. A run does not change them.
 */
public final class ReshardRequest {
  /** Default source layout. */
  public final Optional<Layout> from;

  /** Path of a safetensors file, or of a folder in index or rank form. */
  public @Nullable Path in;

  /**
   * Path of the result. The result has whole tensors if the path ends in {@code .safetensors} or
   * {@link #maxShardBytes} is present.
   */
  public @Nullable Path out;

  /** Default target layout. */
  public Optional<String> to = Optional.empty();

  /** File of rules, which override the defaults. */
  public Optional<Path> rules = Optional.empty();

  /** Dtype in which floating tensors cross ranks. */
  public Optional<DType> wire = Optional.empty();

  /** Dtype in which floating tensors are written. */
  public Optional<DType> dtype = Optional.empty();

  /** Way in which bytes move. */
  public TransferMode mode = TransferMode.DIRECT;

  /** Number of bytes that a thread collects in memory and writes at a time. */
  public OptionalLong bucketBytes = OptionalLong.empty();

  /** Largest number of tensor bytes in one file of the index form. */
  public OptionalLong maxShardBytes = OptionalLong.empty();

  /** Whether the run may replace an existing OUT. */
  public boolean force;

  /** Whether replicas and the result are verified. */
  public boolean verify;

  /** Whether f8 tensors are cast even if they have scales. */
  public boolean ignoreScales;

  /** Longest time in which no byte moves before the run fails. */
  public Duration deadline = Duration.ofSeconds(60);

  /** Creates a request. All other settings have their defaults. */
  public ReshardRequest(Optional<Layout> from) {
    this.from = from;
  }

  /** Returns the path of the input. Throws InvalidArgumentException if there is none. */
  public Path in() {
    return given("in()", in);
  }

  /** Returns the path of the result. Throws InvalidArgumentException if there is none. */
  public Path out() {
    return given("out()", out);
  }

  private static Path given(String setting, @Nullable Path path) {
    if (path == null) {
      throw new InvalidArgumentException(setting + " is missing; give its path");
    }
    return path;
  }

  /** Returns whether OUT has whole tensors, and not a file for each rank. */
  public boolean writesWhole() {
    return maxShardBytes.isPresent() || namesFile();
  }

  /** Returns whether OUT is a folder, and not a single file. */
  public boolean writesFolder() {
    return maxShardBytes.isPresent() || !namesFile();
  }

  private boolean namesFile() {
    return out().getFileName().toString().endsWith(".safetensors");
  }
}
