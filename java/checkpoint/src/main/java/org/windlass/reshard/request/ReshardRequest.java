// SPDX-License-Identifier: Apache-2.0
package org.windlass.reshard.request;

import java.nio.file.Path;
import java.time.Duration;
import java.util.Optional;
import java.util.OptionalLong;
import org.windlass.DType;
import org.windlass.layout.Layout;
import org.windlass.plan.TransferMode;

/**
 * Describes the requested redistribution of a checkpoint.
 *
 * @param in a safetensors file, or a folder in index or rank form
 * @param out the path of the result; it has whole tensors if the path ends in {@code .safetensors}
 *     or {@code maxShardBytes} is present
 * @param from the default source layout
 * @param to the default target layout
 * @param rules a file of rules, which override the defaults
 * @param wire the dtype in which floating tensors cross ranks
 * @param dtype the dtype in which floating tensors are written
 * @param mode how bytes move
 * @param bucketBytes the bytes that a thread collects in memory and writes at a time
 * @param maxShardBytes the most tensor bytes in one file of the index form
 * @param force whether an existing OUT is exchanged
 * @param verify whether replicas and the result are compared
 * @param ignoreScales whether f8 tensors are cast even if they have scales
 * @param deadline how long the run may make no progress
 */
public record ReshardRequest(
    Path in,
    Path out,
    Optional<Layout> from,
    Optional<String> to,
    Optional<Path> rules,
    Optional<DType> wire,
    Optional<DType> dtype,
    TransferMode mode,
    OptionalLong bucketBytes,
    OptionalLong maxShardBytes,
    boolean force,
    boolean verify,
    boolean ignoreScales,
    Duration deadline) {

  /** Returns whether tensors are written whole rather than rank by rank. */
  public boolean writesWhole() {
    return maxShardBytes.isPresent() || namesFile();
  }

  /** Returns whether OUT is a folder rather than a file. */
  public boolean writesFolder() {
    return maxShardBytes.isPresent() || !namesFile();
  }

  private boolean namesFile() {
    return out.getFileName().toString().endsWith(".safetensors");
  }
}
