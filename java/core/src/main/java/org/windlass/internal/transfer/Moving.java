// SPDX-License-Identifier: Apache-2.0
package org.windlass.internal.transfer;

import java.util.Objects;
import org.jspecify.annotations.Nullable;
import org.windlass.DType;
import org.windlass.error.InvalidArgumentException;
import org.windlass.plan.Plan;
import org.windlass.plan.PlanOptions;
import org.windlass.plan.TransferMode;

/**
 * Options for how a tensor moves. They are the defaults that the {@link
 * org.windlass.transfer.TransferBuilder} or {@link org.windlass.link.LinkTransferBuilder} had when
 * the tensor was added.
 *
 * @param wire the dtype in which the tensor crosses ranks; null for {@link Plan#defaultWire}
 * @param options its mode and its bucket size
 */
public record Moving(@Nullable DType wire, PlanOptions options) {
  public static final Moving DEFAULT = new Moving(null, PlanOptions.defaults());

  public Moving withWire(DType dtype) {
    return new Moving(Objects.requireNonNull(dtype, "dtype"), options);
  }

  public Moving withMode(TransferMode mode) {
    return new Moving(wire, options.withMode(mode));
  }

  public Moving withBucketBytes(long bytes) {
    return new Moving(wire, options.withBucketBytes(bytes));
  }

  /**
   * Returns the options for a source of this dtype. The wire dtype applies only to a floating
   * dtype.
   */
  public Moving of(DType source) {
    return wire == null || source.isFloating() ? this : new Moving(null, options);
  }

  /** Returns the dtype in which a tensor with these source and target dtypes crosses ranks. */
  public DType wire(DType source, DType target) {
    DType chosen = of(source).wire;
    return chosen != null ? chosen : Plan.defaultWire(source, target);
  }

  /**
   * Throws if a default was set after the last tensor was added, because no tensor uses that
   * default.
   *
   * @param unused the method that set the default; null if a tensor was added afterwards
   */
  public static void requireUsed(@Nullable String unused, boolean hasTensors) {
    if (unused != null && hasTensors) {
      throw new InvalidArgumentException(
          "register: " + unused
              + " was called after the last tensor was added, so it has no effect; it applies"
              + " only to tensors added after it: call it before add");
    }
  }

  @Override
  public String toString() {
    return (wire == null ? "" : "by " + wire + ", ") + options.mode() + ", buckets of "
        + options.bucketBytes();
  }
}
