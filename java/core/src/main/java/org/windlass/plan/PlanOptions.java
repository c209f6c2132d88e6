// SPDX-License-Identifier: Apache-2.0
package org.windlass.plan;

import java.util.Objects;
import org.windlass.error.InvalidArgumentException;

/**
 * The options of a plan beyond layouts, shape and dtypes. All ranks must use the same options.
 *
 * @param mode how bytes get from sources to targets
 * @param bucketBytes largest size of a bucket, in bytes. A route of at least that size gets a
 *     bucket of its own, so 1 means one route in each bucket.
 * @param turn a number, 0 or more, that selects the replica which sends the first part. Different
 *     numbers for different tensors prevent that the first replica sends all small tensors. A
 *     transfer passes each tensor's index.
 * @param hosts the hosts that ranks live on. If there is a replica on a rank's own host, the rank
 *     reads from it. Data that several ranks of a host need from other hosts crosses once.
 */
public record PlanOptions(TransferMode mode, long bucketBytes, int turn, Hosts hosts) {
  /** Default of {@link #bucketBytes}: 16 MiB. */
  public static final long DEFAULT_BUCKET_BYTES = 16L << 20;

  /**
   * Creates the options.
   *
   * @throws InvalidArgumentException if {@code bucketBytes} is below 1 or {@code turn} is negative
   */
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

  /**
   * Returns mode {@link TransferMode#DIRECT}, {@link #DEFAULT_BUCKET_BYTES}, turn 0, and all ranks
   * on one host.
   */
  public static PlanOptions defaults() {
    return new PlanOptions(TransferMode.DIRECT, DEFAULT_BUCKET_BYTES, 0, Hosts.one());
  }

  /** Returns these options with another mode. */
  public PlanOptions withMode(TransferMode mode) {
    return new PlanOptions(mode, bucketBytes, turn, hosts);
  }

  /** Returns these options with another bucket size, in bytes. */
  public PlanOptions withBucketBytes(long bucketBytes) {
    return new PlanOptions(mode, bucketBytes, turn, hosts);
  }

  /** Returns these options with another {@code turn}. */
  public PlanOptions withTurn(int turn) {
    return new PlanOptions(mode, bucketBytes, turn, hosts);
  }

  /** Returns these options with other hosts. */
  public PlanOptions withHosts(Hosts hosts) {
    return new PlanOptions(mode, bucketBytes, turn, hosts);
  }
}
