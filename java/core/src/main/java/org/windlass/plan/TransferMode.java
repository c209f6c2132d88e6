// SPDX-License-Identifier: Apache-2.0
package org.windlass.plan;

import java.util.List;
import java.util.Locale;
import java.util.Objects;
import org.windlass.error.InvalidArgumentException;
import org.windlass.internal.Named;

/** The ways in which a transfer moves a tensor to its targets. All give the same bits. */
public enum TransferMode {
  /**
   * Moves data in one pass from source memory to target memory. If a route moves data to several
   * ranks, the data is read, reduced and cast once.
   *
   * <p>If several targets live on one host and read from another host, one of them relays the data.
   * It copies the data in the wire dtype into its staging buffer, from where the others read it.
   * The staging buffer holds two parts of the relayed data. The size of a part is at most {@link
   * PlanOptions#bucketBytes}, or 1/4,096 of the relayed bytes if this is larger. Other data does
   * not use staging buffers.
   */
  DIRECT,
  /**
   * Moves data in {@link Bucket}s through staging buffers. The source reduces and casts a bucket
   * into its staging buffer, in the wire dtype. Each target copies the bucket from there, while the
   * source prepares the next one.
   *
   * <p>For each rank that it sends to, a rank's staging buffer holds at most two buckets of {@link
   * PlanOptions#bucketBytes}. A larger bucket consists of a single route, which is split into
   * pieces. The size of a piece is {@link PlanOptions#bucketBytes}, or 1/4,096 of the bucket if
   * this is larger, and at least one element. Data that stays within a rank does not use a staging
   * buffer.
   */
  STAGED,
  /**
   * Gathers and broadcasts whole tensors, as a baseline for comparison. The first rank of the
   * source mesh gathers the whole tensor in the wire dtype, from itself and from replicas. Every
   * target rank copies the whole tensor and then cuts its own part out of it.
   *
   * <p>Tensors move one after another. The staging buffers of the root and of each target hold two
   * whole tensors.
   */
  GATHER_BROADCAST;

  /**
   * Parses a mode from the text that {@link #toString} returns.
   *
   * @throws InvalidArgumentException if no mode has that name
   */
  public static TransferMode parse(String text) {
    Objects.requireNonNull(text, "text");
    return Named.of(text, List.of(values()), "'" + text + "' is no transfer mode: ");
  }

  /** Returns {@code direct}, {@code staged} or {@code gather-broadcast}. */
  @Override
  public String toString() {
    return name().toLowerCase(Locale.ROOT).replace('_', '-');
  }
}
