// SPDX-License-Identifier: Apache-2.0
package org.windlass.plan;

import java.util.Arrays;
import java.util.Locale;
import java.util.Objects;
import java.util.stream.Collectors;
import org.windlass.error.InvalidArgumentException;

/**
 * The ways in which a transfer takes a tensor from sources to targets. The bits are the same in
 * all.
 */
public enum TransferMode {
  /**
   * One pass from source memory to target memory, with nothing staged. What one route takes to
   * several ranks is read, reduced and cast once. Where several of these live on one host and read
   * it from another, one of them does, and stages it in the wire dtype for all, in at most two
   * loads at a time: each of {@link PlanOptions#bucketBytes}, or of a 4,096th of what it stages
   * where that is more.
   */
  DIRECT,
  /**
   * In {@link Bucket}s: the source prepares one in a stage, in the wire dtype, and each target
   * finalizes it from there while the source prepares the next. A rank stages at most two buckets
   * of {@link PlanOptions#bucketBytes} for each rank that it sends to; a bucket that is larger, a
   * single route, goes in pieces of so much, or of a 4,096th of it where that is more (or of one
   * element). What stays within a rank is not staged.
   */
  STAGED,
  /**
   * The first rank of the source mesh gathers the whole tensor in the wire dtype, each part from
   * itself or from one of the replicas; every target rank copies all of it, and then cuts its own
   * piece out: what is usual, as a baseline. Of one tensor after another, two whole tensors at a
   * time are staged on the root and on each target.
   */
  GATHER_BROADCAST;

  /**
   * The mode that {@link #toString} gives.
   *
   * @throws InvalidArgumentException if there is none
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

  /** {@code direct}, {@code staged} or {@code gather-broadcast}. */
  @Override
  public String toString() {
    return name().toLowerCase(Locale.ROOT).replace('_', '-');
  }
}
