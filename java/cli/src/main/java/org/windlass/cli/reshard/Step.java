// SPDX-License-Identifier: Apache-2.0
package org.windlass.cli.reshard;

import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicLong;
import org.windlass.Batch;
import org.windlass.DType;
import org.windlass.DeviceMesh;
import org.windlass.Layout;
import org.windlass.Placement;
import org.windlass.Tensor;
import org.windlass.TensorSpec;

/**
 * What moves together: boxes of sources that are read into memory, windows of targets, and the
 * parts of boxes that windows take. A part is bound to one rank of the communicator, whatever ranks
 * the layouts have; a rank without work runs what others have bound.
 */
final class Step {
  private record Bound(
      TensorSpec from,
      List<Tensor> terms,
      TensorSpec to,
      int worker,
      Tensor target,
      Optional<DType> wire) {
    void addTo(Batch batch, int rank) {
      int first = terms.size() == 1 ? worker : 0;
      boolean holds = rank >= first && rank < first + terms.size();
      batch.add(from, holds ? terms.get(rank - first) : null, to, rank == worker ? target : null);
    }
  }

  private final int workers;
  private final AtomicLong calls;
  private final List<FileRead> reads = new ArrayList<>();
  private final AtomicInteger nextRead = new AtomicInteger();
  private final List<Bound> bound = new ArrayList<>();
  private final List<PackedBits> packed = new ArrayList<>();
  private final List<Staged> windows = new ArrayList<>();

  /**
   * For a communicator of so many ranks.
   *
   * @param calls counts reads and writes as they are done
   */
  Step(int workers, AtomicLong calls) {
    this.workers = workers;
    this.calls = calls;
  }

  boolean isEmpty() {
    return windows.isEmpty();
  }

  /** Whether a transfer is part of it. */
  boolean hasTransfer() {
    return !bound.isEmpty();
  }

  /** Bytes that it writes. */
  long bytes() {
    return windows.stream().mapToLong(window -> window.bytes().bytes()).sum();
  }

  /** Adds a window that is filled. */
  void add(Staged window) {
    windows.add(window);
  }

  /** Adds what is read before anything else. */
  void add(List<FileRead> more) {
    reads.addAll(more);
  }

  /** Adds a leg that threads read straight into its windows. */
  void add(PackedBits leg) {
    packed.add(leg);
  }

  /**
   * Adds a part of a box.
   *
   * @param terms the part in each term of the box, which are reduced
   * @param target the part in its window
   */
  void add(TensorMove move, List<Tensor> terms, Tensor target) {
    int worker = bound.size() % workers;
    long[] shape = target.shape();
    Layout own = DeviceMesh.of(1).at(worker).layout(Placement.replicate());
    Layout from =
        terms.size() == 1
            ? own
            : DeviceMesh.of(terms.size())
                .layout(Placement.partial(move.source().from().partialOp().orElseThrow()));
    String name = move.label() + " #" + bound.size();
    bound.add(
        new Bound(
            TensorSpec.of(name, move.source().dtype(), from, shape),
            terms,
            TensorSpec.of(name, move.target().dtype(), own, shape),
            worker,
            target,
            move.wire()));
  }

  /** Reads boxes until all are read or being read. */
  void read(ByteBuffer scratch) {
    for (int i = nextRead.getAndIncrement(); i < reads.size(); i = nextRead.getAndIncrement()) {
      reads.get(i).run(scratch);
      calls.getAndIncrement();
    }
  }

  /**
   * Adds every part to a rank's batch: those that name no wire dtype first, since a batch's holds
   * for all that follow.
   */
  void addTo(Batch batch, int rank) {
    for (Bound part : bound) {
      if (part.wire().isEmpty()) {
        part.addTo(batch, rank);
      }
    }
    for (Bound part : bound) {
      if (part.wire().isPresent()) {
        batch.wire(part.wire().get());
        part.addTo(batch, rank);
      }
    }
  }

  /** Fills what a worker fills of tensors that no transfer moves. */
  void movePacked(int worker) {
    packed.forEach(leg -> leg.run(worker, workers));
  }

  /** Writes one of {@code shares} equal parts of all windows, which are filled, to their files. */
  void write(int share, int shares) {
    long total = bytes();
    long begin = total / shares * share + Math.min(share, total % shares);
    long end = begin + total / shares + (share < total % shares ? 1 : 0);
    long at = 0;
    for (Staged window : windows) {
      long bytes = window.bytes().bytes();
      window.write(Math.max(begin - at, 0), Math.min(end - at, bytes), calls);
      at += bytes;
    }
  }
}
