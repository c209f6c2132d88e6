// SPDX-License-Identifier: Apache-2.0
package org.windlass.plan;

import java.util.Objects;
import org.windlass.error.InvalidArgumentException;

/**
 * The choices of a plan beyond layouts, shape and dtypes. All ranks choose alike.
 *
 * @param mode how bytes get from sources to targets
 * @param bucketBytes chunks of one bucket add up to at most this; a chunk at least as large goes
 *     alone, and 1 means one chunk a bucket
 * @param turn which replica's share comes first, so that tensors of few regions do not all come
 *     from the first replica; a transfer gives each tensor its index
 * @param hosts which ranks live together: where a replica is on the host of a rank that needs it,
 *     it comes from there, and what several ranks of a host need from others comes once
 */
public record PlanOptions(TransferMode mode, long bucketBytes, int turn, Hosts hosts) {
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
    Objects.requireNonNull(hosts, "hosts");
  }

  /** {@link TransferMode#DIRECT}, {@link #DEFAULT_BUCKET_BYTES}, turn 0, all ranks on one host. */
  public static PlanOptions defaults() {
    return new PlanOptions(TransferMode.DIRECT, DEFAULT_BUCKET_BYTES, 0, Hosts.one());
  }

  /** These options with another mode. */
  public PlanOptions withMode(TransferMode mode) {
    return new PlanOptions(mode, bucketBytes, turn, hosts);
  }

  /** These options with another size of buckets. */
  public PlanOptions withBucketBytes(long bucketBytes) {
    return new PlanOptions(mode, bucketBytes, turn, hosts);
  }

  /** These options with another turn. */
  public PlanOptions withTurn(int turn) {
    return new PlanOptions(mode, bucketBytes, turn, hosts);
  }

  /** These options with other hosts. */
  public PlanOptions withHosts(Hosts hosts) {
    return new PlanOptions(mode, bucketBytes, turn, hosts);
  }

  /** These options with {@link Hosts#ofEach} so many ranks. */
  public PlanOptions withRanksPerHost(int ranksPerHost) {
    return withHosts(Hosts.ofEach(ranksPerHost));
  }
}
