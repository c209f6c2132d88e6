// SPDX-License-Identifier: Apache-2.0
package org.windlass.internal.transfer;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.function.Function;
import org.jspecify.annotations.Nullable;
import org.windlass.Communicator;
import org.windlass.Tensor;
import org.windlass.error.InternalException;
import org.windlass.error.VerificationFailedException;
import org.windlass.internal.Deadline;
import org.windlass.internal.Native;
import org.windlass.internal.call.Gathered;
import org.windlass.layout.Layout;
import org.windlass.layout.Placement;
import org.windlass.layout.Region;
import org.windlass.layout.TensorSpec;

/**
 * Checks that replicas of sources are equal. Ranks that hold the same part of a tensor, or the same
 * term of a {@code Partial}, must hold the same bits. Ranks compare hashes of their parts. If two
 * hashes differ, ranks compare hashes of smaller and smaller parts until they find the first
 * element that differs.
 *
 * @param communicator has every rank of the sources' layouts
 * @param ranks element {@code r} is the number that layouts use for rank {@code r}; ascending
 * @param named formats a layout for messages
 */
public record Replicas(
    Deadline until, Communicator communicator, int[] ranks, Function<Layout, String> named) {
  private record Suspects(BoundTensor tensor, int first, int other) {}

  /**
   * Checks all replicas. Collective over the communicator.
   *
   * @param tensors the same on every rank, each with that rank's source
   * @throws VerificationFailedException on every rank, if two replicas differ
   */
  public void check(List<BoundTensor> tensors) {
    Map<String, BoundTensor> sources = new LinkedHashMap<>();
    for (BoundTensor tensor : tensors) {
      if (tensor.from().layout().placements().contains(Placement.replicate())) {
        sources.putIfAbsent(tensor.from().name(), tensor);
      }
    }
    Suspects suspects = compare(new ArrayList<>(sources.values()));
    if (suspects != null) {
      throw failure(suspects);
    }
  }

  /**
   * Compares the replicas of all tensors. Returns the first tensor with a difference and two ranks
   * that differ, or null.
   */
  private @Nullable Suspects compare(List<BoundTensor> tensors) {
    if (tensors.isEmpty()) {
      return null;
    }
    long[][] hashes =
        Gathered.words(
            communicator, until::leftNs, Native.WL_OP_CHECK_REPLICAS,
            tensors.stream().mapToLong(tensor -> hash(held(tensor))).toArray());
    for (int i = 0; i < hashes[0].length; i++) {
      BoundTensor tensor = tensors.get(i);
      for (int rank : tensor.from().layout().mesh().ranks()) {
        int first = firstReplica(tensor.from().layout(), rank);
        if (hashes[member(rank)][i] != hashes[member(first)][i]) {
          return new Suspects(tensor, first, rank);
        }
      }
    }
    return null;
  }

  /**
   * Returns the rank that holds the same part and has coordinate 0 in each replicating dimension.
   */
  private static int firstReplica(Layout layout, int rank) {
    int[] coordinates = Objects.requireNonNull(layout.mesh().coordinates(rank));
    for (int m = 0; m < coordinates.length; m++) {
      if (layout.placements().get(m) instanceof Placement.Replicate) {
        coordinates[m] = 0;
      }
    }
    return layout.mesh().rankAt(coordinates);
  }

  private int member(int rank) {
    return Arrays.binarySearch(ranks, rank);
  }

  /**
   * Returns this rank's source without its padding. Padding may have any values, and is not
   * compared.
   */
  private @Nullable Tensor held(BoundTensor tensor) {
    Tensor part = tensor.source();
    if (part == null) {
      return null;
    }
    long[] real = tensor.from().localRegion(ranks[communicator.rank()]).shape();
    for (int d = 0; d < real.length; d++) {
      part = part.narrow(d, 0, real[d]);
    }
    return part;
  }

  private long hash(@Nullable Tensor part) {
    return part == null ? 0 : Views.hash(communicator, "checkReplicas", part, 0);
  }

  private VerificationFailedException failure(Suspects suspects) {
    TensorSpec spec = suspects.tensor.from();
    long[] at = firstDifference(suspects);
    Region held = spec.localRegion(suspects.first);
    for (int d = 0; d < at.length; d++) {
      at[d] = global(held.intervals(d), at[d]);
    }
    return new VerificationFailedException(
        "checkReplicas: tensor '" + spec.name() + "' on rank " + suspects.other
            + " is not the replica of rank " + suspects.first + " that its layout "
            + named.apply(spec.layout()) + " says; they differ first at index "
            + Arrays.toString(at),
        null,
        "checkReplicas",
        List.of(suspects.first, suspects.other));
  }

  /**
   * Converts a rank's local index in one dimension to a global one. {@code held} has the global
   * intervals that the rank holds.
   */
  private static long global(List<Region.Interval> held, long local) {
    long left = local;
    for (Region.Interval interval : held) {
      if (left < interval.length()) {
        return interval.start() + left;
      }
      left -= interval.length();
    }
    throw new InternalException("local index " + local + " is outside " + held);
  }

  /** Returns the local index of the first element that differs. */
  private long[] firstDifference(Suspects suspects) {
    TensorSpec spec = suspects.tensor.from();
    long[] shape = spec.localRegion(suspects.first).shape();
    int own = ranks[communicator.rank()];
    boolean compares = own == suspects.first || own == suspects.other;
    Tensor part = compares ? held(suspects.tensor) : null;
    long[] at = new long[shape.length];
    for (int d = 0; d < shape.length; d++) {
      long low = 0;
      long high = shape[d];
      while (high - low > 1) {
        long middle = (low + high) >>> 1;
        Tensor lower = part != null ? part.narrow(0, low, middle - low) : null;
        long[][] hashes =
            Gathered.words(
            communicator, until::leftNs, Native.WL_OP_CHECK_REPLICAS, hash(lower));
        if (hashes[member(suspects.first)][0] != hashes[member(suspects.other)][0]) {
          high = middle;
        } else {
          low = middle;
        }
      }
      at[d] = low;
      part = part != null ? part.select(0, low) : null;
    }
    return at;
  }
}
