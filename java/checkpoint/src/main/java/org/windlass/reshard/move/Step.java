// SPDX-License-Identifier: Apache-2.0
package org.windlass.reshard.move;

import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;
import org.windlass.DType;
import org.windlass.Tensor;
import org.windlass.layout.DeviceMesh;
import org.windlass.layout.Layout;
import org.windlass.layout.Placement;
import org.windlass.layout.TensorSpec;
import org.windlass.reshard.tensor.TensorMove;
import org.windlass.transfer.TransferBuilder;

/**
 * Moves parts of several tensors together. It reads boxes of sources into memory, copies parts of
 * the boxes to windows of targets, and writes the windows.
 *
 * <p>The ranks of a communicator share the work, independent of the ranks in the layouts. They copy
 * parts, and a transfer reduces the parts with several terms. Every process has the same steps, in
 * the same order.
 */
final class Step {
  private record Bound(
      TensorSpec from,
      List<Tensor> terms,
      TensorSpec to,
      int worker,
      Tensor target,
      Optional<DType> wire) {
    void addTo(TransferBuilder builder, int rank) {
      Tensor term = rank < terms.size() ? terms.get(rank) : null;
      builder.add(from, term, to, rank == worker ? target : null);
    }
  }

  /**
   * Copies a part. If {@code by} is present, the copy casts through that dtype, which neither end
   * has.
   */
  private record Copy(Tensor source, Tensor target, Optional<DType> by) {
    void run(ByteBuffer scratch) {
      Tensor from = source;
      if (by.isPresent()) {
        from = Tensor.of(scratch.clear(), by.get(), source.shape()).copyFrom(source);
      }
      target.copyFrom(from);
    }
  }

  // Limit for one copy of a thread. Elements of the widest dtype then fit the scratch memory.
  private static final long MOST_ELEMENTS = FileRead.SCRATCH_BYTES / Long.BYTES;

  private final Team team;
  private final int firstRead;
  private final int firstCopy;
  private final List<FileRead> reads = new ArrayList<>();
  private final List<Copy> copies = new ArrayList<>();
  private final List<Bound> bound = new ArrayList<>();
  private final List<PackedBits> packed = new ArrayList<>();
  private final List<Staged> windows = new ArrayList<>();

  private Step(Team team, int firstRead, int firstCopy) {
    this.team = team;
    this.firstRead = firstRead;
    this.firstCopy = firstCopy;
  }

  /** Returns the first step of a run. */
  static Step first(Team team) {
    return new Step(team, 0, 0);
  }

  /** Returns the step after this one, to which nothing more may be added. */
  Step next() {
    // Each worker has requested one number more than there were reads or copies.
    int asked = team.workers();
    return isEmpty()
        ? this
        : new Step(team, firstRead + reads.size() + asked, firstCopy + copies.size() + asked);
  }

  boolean isEmpty() {
    return windows.isEmpty();
  }

  /** Returns whether a transfer is part of the step. */
  boolean hasTransfer() {
    return !bound.isEmpty();
  }

  /** Returns the number of bytes that the step writes. */
  long bytes() {
    return windows.stream().mapToLong(window -> window.bytes().bytes()).sum();
  }

  /** Adds a window to fill and write. */
  void add(Staged window) {
    windows.add(window);
  }

  /** Adds reads, which come before all other work of the step. */
  void add(List<FileRead> more) {
    reads.addAll(more);
  }

  /** Adds a leg that threads read directly into its windows. */
  void add(PackedBits leg) {
    packed.add(leg);
  }

  /**
   * Adds a part of a box.
   *
   * @param terms the part in each term of the box, which are reduced
   * @param target the part in its window
   * @param home the rank whose part of an arena holds the window, or {@link Arena#ANYWHERE}
   */
  void add(TensorMove move, List<Tensor> terms, Tensor target, int home) {
    if (terms.size() > 1) {
      reduce(move, terms, target, home);
      return;
    }
    DType from = move.source().dtype();
    DType to = move.target().dtype();
    copy(terms.get(0), target, move.wire().filter(wire -> wire != from && wire != to));
  }

  /** Adds a copy in parts that threads share. */
  private void copy(Tensor source, Tensor target, Optional<DType> by) {
    long[] shape = target.shape();
    int cut = 0;
    while (cut < shape.length && shape[cut] == 1) {
      cut++;
    }
    if (target.numel() <= MOST_ELEMENTS || cut == shape.length) {
      copies.add(new Copy(source, target, by));
      return;
    }
    long parts = Math.min(shape[cut], (target.numel() + MOST_ELEMENTS - 1) / MOST_ELEMENTS);
    long step = (shape[cut] + parts - 1) / parts;
    for (long begin = 0; begin < shape[cut]; begin += step) {
      long length = Math.min(step, shape[cut] - begin);
      copy(source.narrow(cut, begin, length), target.narrow(cut, begin, length), by);
    }
  }

  private void reduce(TensorMove move, List<Tensor> terms, Tensor target, int home) {
    int worker = home == Arena.ANYWHERE ? bound.size() % team.size() : home;
    long[] shape = target.shape();
    Layout from =
        DeviceMesh.of(terms.size())
            .layout(Placement.partial(move.source().from().partialOp().orElseThrow()));
    Layout to = DeviceMesh.of(1).at(worker).layout(Placement.replicate());
    String name = move.label() + " #" + bound.size();
    bound.add(
        new Bound(
            TensorSpec.of(name, move.source().dtype(), from, shape),
            terms,
            TensorSpec.of(name, move.target().dtype(), to, shape),
            worker,
            target,
            move.wire()));
  }

  /** Reads boxes until none is left to start. Other threads may still read theirs. */
  void read(ByteBuffer scratch) {
    for (int i = team.nextRead() - firstRead;
        i < reads.size();
        i = team.nextRead() - firstRead) {
      reads.get(i).run(scratch);
      team.called();
    }
  }

  /** Copies parts until none is left to start. All boxes must have been read. */
  void copy(ByteBuffer scratch) {
    for (int i = team.nextCopy() - firstCopy;
        i < copies.size();
        i = team.nextCopy() - firstCopy) {
      copies.get(i).run(scratch);
    }
  }

  /**
   * Adds every part to reduce to a rank's transfer. Parts without a wire dtype come first, because
   * a transfer's wire dtype applies to all later parts.
   */
  void addTo(TransferBuilder builder, int rank) {
    for (Bound part : bound) {
      if (part.wire().isEmpty()) {
        part.addTo(builder, rank);
      }
    }
    for (Bound part : bound) {
      if (part.wire().isPresent()) {
        builder.defaultWire(part.wire().get());
        part.addTo(builder, rank);
      }
    }
  }

  /** Fills a worker's share of the tensors that no transfer moves. */
  void movePacked(int worker) {
    packed.forEach(leg -> leg.run(worker, team.size()));
  }

  /** Writes a rank's share of all filled windows to their files. */
  void write(int share) {
    int shares = team.size();
    long total = bytes();
    long begin = total / shares * share + Math.min(share, total % shares);
    long end = begin + total / shares + (share < total % shares ? 1 : 0);
    long at = 0;
    for (Staged window : windows) {
      long bytes = window.bytes().bytes();
      window.write(Math.max(begin - at, 0), Math.min(end - at, bytes), team::called);
      at += bytes;
    }
  }
}
