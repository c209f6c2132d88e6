// SPDX-License-Identifier: Apache-2.0
package org.windlass.plan;

import java.util.Arrays;
import java.util.Locale;
import java.util.Objects;
import java.util.stream.Collectors;
import org.windlass.error.InvalidArgumentException;

/**
 * The ways in which a transfer moves a tensor from sources to targets. All of them give the same
 * bits.
 */
public enum TransferMode {
  /**
   * Moves data in one pass from source memory to target memory, without staging buffers on one
   * host. Data that one route moves to several ranks is read, reduced and cast once.
   *
   * <p>If several targets live on one host and read from another host, one of them relays the data.
   * It stages the data in the wire dtype for the others, in at most two loads at a time. A load has
   * {@link PlanOptions#bucketBytes}, or one 4,096th of the staged bytes if that is more.
   */
  DIRECT,
  /**
   * Moves data in {@link Bucket}s. The source prepares a bucket in a staging buffer, in the wire
   * dtype. Each target finalizes the bucket from there while the source prepares the next one.
   *
   * <p>A rank stages at most two buckets of {@link PlanOptions#bucketBytes} for each rank that it
   * sends to. A larger bucket is a single route, which is split into pieces. A piece has that size,
   * or one 4,096th of the bucket if that is more, and at least one element. Data that stays within
   * a rank is not staged.
   */
  STAGED,
  /**
   * Gathers and broadcasts whole tensors, as a baseline for comparison. The first rank of the
   * source mesh gathers the whole tensor in the wire dtype, from itself and from replicas. Every
   * target rank copies the whole tensor and then cuts its own part out of it. Tensors move one
   * after another. The root and each target stage two whole tensors at a time.
   */
  GATHER_BROADCAST;

  /**
   * Parses a mode from the text that {@link #toString} returns.
   *
   * @throws InvalidArgumentException if no mode has that name
   */
  public static TransferMode parse(String text) {
    Objects.requireNonNull(text, "text");
    for (TransferMode mode : values()) {
      if (mode.toString().equals(text)) {
        return mode;
      }
    }
    throw new InvalidArgumentException(
        "'" + text + "' is no transfer mode: "
            + Arrays.stream(values())
                .map(TransferMode::toString)
                .collect(Collectors.joining(", ")));
  }

  /** Returns {@code direct}, {@code staged} or {@code gather-broadcast}. */
  @Override
  public String toString() {
    return name().toLowerCase(Locale.ROOT).replace('_', '-');
  }
}
