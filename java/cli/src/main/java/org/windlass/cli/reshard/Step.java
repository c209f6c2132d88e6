// SPDX-License-Identifier: Apache-2.0
package org.windlass.cli.reshard;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import org.windlass.Batch;
import org.windlass.DType;
import org.windlass.Region;
import org.windlass.Tensor;
import org.windlass.TensorSpec;

/**
 * What moves together: windows of targets, and the legs that fill them, each bound at both ends on
 * every rank. A source that is not aligned in its file moves as bytes if nothing happens to its
 * values, else through aligned memory, which only lives as long as the step.
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
  private final List<PackedBits> packed = new ArrayList<>();
  private final List<Staged> windows = new ArrayList<>();
  private final List<Tensor> copies = new ArrayList<>();

  Step(RankNumbers numbers) {
    this.numbers = numbers;
  }

  boolean isEmpty() {
    return windows.isEmpty();
  }

  /** Whether a transfer is part of it. */
  boolean hasTransfer() {
    return !tensors.isEmpty();
  }

  /** Bytes that it writes. */
  long bytes() {
    return windows.stream().mapToLong(window -> window.bytes().bytes()).sum();
  }

  /** Adds a window that its legs fill. */
  void add(Staged window) {
    windows.add(window);
  }

  /**
   * Adds a leg of a tensor. Call it from one thread.
   *
   * @param from what each source rank stores
   * @param to the window that each target rank writes
   * @param shared whether that is one window, of which each rank writes its part
   */
  void add(
      TensorMove move,
      Leg leg,
      Map<Integer, Stored> from,
      Map<Integer, Staged> to,
      boolean shared) {
    if (move.source().dtype().bits() < 8) {
      packed.add(new PackedBits(move, leg, from, to));
      return;
    }
    boolean aligned = from.values().stream().allMatch(Stored::isAligned);
    boolean asBytes = !aligned && move.keepsBits();
    DType fromDtype = asBytes ? DType.U8 : move.source().dtype();
    DType toDtype = asBytes ? DType.U8 : move.target().dtype();
    long[] shape = leg.shape();
    if (asBytes) {
      shape = Arrays.copyOf(shape, shape.length + 1);
      shape[shape.length - 1] = move.source().dtype().bytes();
    }
    Map<Integer, Tensor> sources = new HashMap<>();
    for (int rank : leg.from().mesh().ranks()) {
      Region region = leg.from().localRegion(leg.shape(), rank);
      if (!region.isEmpty()) {
        Stored stored = from.get(rank);
        Tensor all = move.axes().view(aligned ? stored.typed() : stored.byteElements());
        Tensor view = narrowed(all, leg.sourceStart(), region.shape());
        sources.put(
            numbers.of(rank), aligned || asBytes ? view : copy(view, move.source().dtype()));
      }
    }
    Map<Integer, Tensor> targets = new HashMap<>();
    for (int rank : leg.to().mesh().ranks()) {
      Region region = leg.to().localRegion(leg.shape(), rank);
      if (!region.isEmpty()) {
        Staged window = to.get(rank);
        long[] start = window.place(leg);
        if (shared) {
          Arrays.setAll(start, d -> start[d] + region.intervals(d).get(0).start());
        }
        targets.put(
            numbers.of(rank), narrowed(window.elements(asBytes), start, region.shape()));
      }
    }
    String name = move.label() + " #" + tensors.size();
    tensors.add(
        new Bound(
            TensorSpec.of(name, fromDtype, numbers.renumber(leg.from()), shape),
            sources,
            TensorSpec.of(name, toDtype, numbers.renumber(leg.to()), shape),
            targets,
            asBytes ? Optional.empty() : move.wire()));
  }

  /** The box of this shape at {@code start}; dimensions that follow are whole. */
  private static Tensor narrowed(Tensor all, long[] start, long[] shape) {
    Tensor view = all;
    for (int d = 0; d < start.length; d++) {
      view = view.narrow(d, start[d], shape[d]);
    }
    return view;
  }

  /** Elements whose bytes are the last dimension, in aligned memory. */
  private Tensor copy(Tensor bytes, DType dtype) {
    Tensor copy = Tensor.allocate(dtype, Arrays.copyOf(bytes.shape(), bytes.ndim() - 1));
    Tensor.of(copy.address(), copy.bytes(), copy, DType.U8, bytes.shape()).copyFrom(bytes);
    copies.add(copy);
    return copy;
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

  /** Fills what a rank writes of tensors that no transfer moves. */
  void movePacked(int rank) {
    packed.forEach(leg -> leg.run(rank));
  }

  /** Writes one of {@code shares} equal parts of all windows, which are filled, to their files. */
  void write(int share, int shares) {
    long total = bytes();
    long begin = total / shares * share + Math.min(share, total % shares);
    long end = begin + total / shares + (share < total % shares ? 1 : 0);
    long at = 0;
    for (Staged window : windows) {
      long bytes = window.bytes().bytes();
      window.write(Math.max(begin - at, 0), Math.min(end - at, bytes));
      at += bytes;
    }
  }

  /** Lets go of what only this step needs. */
  void close() {
    copies.forEach(Tensor::close);
  }
}
