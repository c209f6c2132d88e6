// SPDX-License-Identifier: Apache-2.0
package org.windlass;

/**
 * Choices of a plan beyond layouts, shape and dtypes. All ranks choose alike.
 *
 * @param mode how bytes get from sources to targets
 * @param bucketBytes chunks of one bucket add up to at most this; a chunk at least as large goes
 *     alone, and 1 means one chunk a bucket
 * @param turn which replica's share comes first, so that tensors of few regions do not all come
 *     from the first replica; a batch gives each tensor its index
 */
public record PlanOptions(TransferMode mode, long bucketBytes, int turn) {
  /** What {@link #bucketBytes} is where nothing else is asked: 16 MiB. */
  public static final long DEFAULT_BUCKET_BYTES = 16L << 20;

  public PlanOptions {
    if (mode == null) {
      throw new InvalidArgumentException("mode is null");
    }
    if (bucketBytes < 1) {
      throw new InvalidArgumentException("bucketBytes is at least 1, not " + bucketBytes);
    }
    if (turn < 0) {
      throw new InvalidArgumentException("turn counts from 0, not " + turn);
    }
  }

  /** {@link TransferMode#DIRECT}, {@link #DEFAULT_BUCKET_BYTES} and turn 0. */
  public static PlanOptions defaults() {
    return new PlanOptions(TransferMode.DIRECT, DEFAULT_BUCKET_BYTES, 0);
  }

  public PlanOptions withMode(TransferMode mode) {
    return new PlanOptions(mode, bucketBytes, turn);
  }

  public PlanOptions withBucketBytes(long bucketBytes) {
    return new PlanOptions(mode, bucketBytes, turn);
  }

  public PlanOptions withTurn(int turn) {
    return new PlanOptions(mode, bucketBytes, turn);
  }
}
