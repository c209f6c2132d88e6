// SPDX-License-Identifier: Apache-2.0
package org.windlass.plan;

import java.util.Objects;
import org.windlass.InvalidArgumentException;
import org.windlass.layout.DeviceMesh;

/**
 * The choices of a plan beyond layouts, shape and dtypes. All ranks choose alike.
 *
 * @param mode how bytes get from sources to targets
 * @param bucketBytes chunks of one bucket add up to at most this; a chunk at least as large goes
 *     alone, and 1 means one chunk a bucket
 * @param turn which replica's share comes first, so that tensors of few regions do not all come
 *     from the first replica; a batch gives each tensor its index
 * @param ranksPerHost how many ranks, counted from 0, are on the same host: where a replica is on
 *     the host of a rank that needs it, it comes from there
 */
public record PlanOptions(
    TransferMode mode, long bucketBytes, int turn, int ranksPerHost) {
  /** What {@link #bucketBytes} is where nothing else is asked: 16 MiB. */
  public static final long DEFAULT_BUCKET_BYTES = 16L << 20;

  /** Checks the components. */
  public PlanOptions {
    Objects.requireNonNull(mode, "mode");
    if (bucketBytes < 1) {
      throw new InvalidArgumentException("bucketBytes is at least 1, not " + bucketBytes);
    }
    if (turn < 0) {
      throw new InvalidArgumentException("turn counts from 0, not " + turn);
    }
    if (ranksPerHost < 1) {
      throw new InvalidArgumentException("ranksPerHost is at least 1, not " + ranksPerHost);
    }
  }

  /** {@link TransferMode#DIRECT}, {@link #DEFAULT_BUCKET_BYTES}, turn 0, all ranks on one host. */
  public static PlanOptions defaults() {
    return new PlanOptions(TransferMode.DIRECT, DEFAULT_BUCKET_BYTES, 0, DeviceMesh.MAX_RANKS);
  }

  /** These options with another mode. */
  public PlanOptions withMode(TransferMode mode) {
    return new PlanOptions(mode, bucketBytes, turn, ranksPerHost);
  }

  /** These options with another size of buckets. */
  public PlanOptions withBucketBytes(long bucketBytes) {
    return new PlanOptions(mode, bucketBytes, turn, ranksPerHost);
  }

  /** These options with another turn. */
  public PlanOptions withTurn(int turn) {
    return new PlanOptions(mode, bucketBytes, turn, ranksPerHost);
  }

  /** These options with another number of ranks a host. */
  public PlanOptions withRanksPerHost(int ranksPerHost) {
    return new PlanOptions(mode, bucketBytes, turn, ranksPerHost);
  }
}
