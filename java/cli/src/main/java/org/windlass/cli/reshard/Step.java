// SPDX-License-Identifier: Apache-2.0
package org.windlass.cli.reshard;

import java.util.ArrayList;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import org.windlass.Batch;
import org.windlass.DType;
import org.windlass.Layout;
import org.windlass.Region;
import org.windlass.Tensor;
import org.windlass.TensorSpec;

/**
 * Tensors that move together: each bound at both ends on every rank. A tensor that is not aligned
 * in its file moves as bytes if nothing happens to its values, else through aligned memory, which
 * only lives as long as the step.
 */
final class Step {
  private record Bound(
      TensorSpec from,
      Map<Integer, Tensor> sources,
      TensorSpec to,
      Map<Integer, Tensor> targets,
      Optional<DType> wire) {}

  private final RankNumbers numbers;
  private final List<Bound> tensors = new ArrayList<>();
  private final Map<Stored, Tensor> staged = new HashMap<>();
  private final Map<Stored, Tensor> returned = new LinkedHashMap<>();

  Step(RankNumbers numbers) {
    this.numbers = numbers;
  }

  /** Adds a tensor. Call it from one thread. */
  void add(TensorMove move, Source source, Layout to, Map<Integer, Stored> targets, boolean whole) {
    boolean asBytes =
        move.keepsBits()
            && !(aligned(source.stored().values()) && aligned(targets.values()));
    DType fromDtype = asBytes ? DType.U8 : move.source();
    DType toDtype = asBytes ? DType.U8 : move.target();
    long[] shape = move.shape();
    if (asBytes) {
      shape = java.util.Arrays.copyOf(shape, shape.length + 1);
      shape[shape.length - 1] = move.source().bytes();
    }
    Map<Integer, Tensor> sources = new HashMap<>();
    source
        .stored()
        .forEach((rank, stored) -> put(sources, rank, () -> sourceView(stored, asBytes)));
    Map<Integer, Tensor> views = new HashMap<>();
    targets.forEach(
        (rank, stored) -> {
          Region part = to.localRegion(move.shape(), rank);
          if (!part.isEmpty()) {
            put(views, rank, () -> targetView(stored, asBytes, whole ? part : null));
          }
        });
    tensors.add(
        new Bound(
            TensorSpec.of(move.name(), fromDtype, numbers.renumber(source.layout()), shape),
            sources,
            TensorSpec.of(move.name(), toDtype, numbers.renumber(to), shape),
            views,
            asBytes ? Optional.empty() : move.wire()));
  }

  private void put(
      Map<Integer, Tensor> views, int rank, java.util.function.Supplier<Tensor> view) {
    Tensor tensor = view.get();
    if (tensor != null) {
      views.put(numbers.of(rank), tensor);
    }
  }

  private static boolean aligned(Iterable<Stored> all) {
    for (Stored stored : all) {
      if (!stored.isEmpty() && !stored.isAligned()) {
        return false;
      }
    }
    return true;
  }

  private Tensor sourceView(Stored stored, boolean asBytes) {
    if (stored.isEmpty()) {
      return null;
    }
    if (asBytes) {
      return stored.byteElements();
    }
    if (stored.isAligned()) {
      return stored.typed();
    }
    return staged.computeIfAbsent(
        stored,
        key -> {
          Tensor copy = Tensor.allocate(key.dtype(), key.shape());
          bytesOf(copy).copyFrom(key.bytes());
          return copy;
        });
  }

  private Tensor targetView(Stored stored, boolean asBytes, Region part) {
    Tensor all;
    if (asBytes) {
      all = stored.byteElements();
    } else if (stored.isAligned()) {
      all = stored.typed();
    } else {
      all =
          returned.computeIfAbsent(
              stored, key -> Tensor.allocate(key.dtype(), key.shape()));
    }
    if (part == null) {
      return all;
    }
    Tensor view = all;
    for (int d = 0; d < part.ndim(); d++) {
      Region.Interval interval = part.intervals(d).get(0);
      view = view.narrow(d, interval.start(), interval.length());
    }
    return view;
  }

  /** A tensor's own bytes; it is contiguous. */
  private static Tensor bytesOf(Tensor tensor) {
    return Tensor.of(tensor.address(), tensor.bytes(), tensor, DType.U8, tensor.bytes());
  }

  boolean isEmpty() {
    return tensors.isEmpty();
  }

  /**
   * Adds every tensor to a rank's batch: those that name no wire dtype first, since a batch's holds
   * for all that follow.
   */
  void addTo(Batch batch, int rank) {
    for (Bound bound : tensors) {
      if (bound.wire().isEmpty()) {
        add(batch, bound, rank);
      }
    }
    for (Bound bound : tensors) {
      if (bound.wire().isPresent()) {
        batch.wire(bound.wire().get());
        add(batch, bound, rank);
      }
    }
  }

  private static void add(Batch batch, Bound bound, int rank) {
    batch.add(bound.from(), bound.sources().get(rank), bound.to(), bound.targets().get(rank));
  }

  /** Copies what moved through aligned memory to its place. */
  void finish() {
    returned.forEach((stored, copy) -> stored.bytes().copyFrom(bytesOf(copy)));
    returned.values().forEach(Tensor::close);
    staged.values().forEach(Tensor::close);
  }
}
