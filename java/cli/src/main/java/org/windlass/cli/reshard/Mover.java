// SPDX-License-Identifier: Apache-2.0
package org.windlass.cli.reshard;

import java.time.Duration;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.OptionalLong;
import java.util.concurrent.atomic.AtomicLong;
import org.windlass.Batch;
import org.windlass.Communicator;
import org.windlass.CommunicatorOptions;
import org.windlass.Layout;
import org.windlass.LocalGroup;
import org.windlass.Transfer;
import org.windlass.TransferMode;
import org.windlass.checkpoint.Checkpoint;
import org.windlass.checkpoint.SafetensorsFile;

/** Moves tensors from mapped files to mapped files, with a thread of this process for each rank. */
final class Mover {
  // A step's unaligned tensors are copied in memory, and a step ends before the next begins.
  private static final long STEP_BYTES = 256L << 20;
  // Longer than any step: the watch alone ends what makes no progress.
  private static final Duration NO_LIMIT = Duration.ofDays(7);

  private final Checkpoint in;
  private final Output output;
  private final List<Integer> targetRanks;
  private final TransferMode mode;
  private final OptionalLong bucketBytes;
  private final RankNumbers numbers;
  private final ProgressWatch watch;
  private final AtomicLong finishedBytes = new AtomicLong();
  private volatile Transfer current;

  Mover(
      Checkpoint in,
      Output output,
      List<TensorMove> moves,
      List<Integer> targetRanks,
      ReshardRequest request,
      ProgressListener listener) {
    this.in = in;
    this.output = output;
    this.targetRanks = targetRanks;
    this.mode = request.mode();
    this.bucketBytes = request.bucketBytes();
    List<Layout> layouts = new ArrayList<>();
    for (TensorMove move : moves) {
      layouts.add(move.from());
      layouts.add(move.to());
    }
    this.numbers = RankNumbers.of(layouts);
    long total = moves.stream().mapToLong(this::writtenBytes).sum();
    this.watch = new ProgressWatch(request.deadline(), this::moved, total, listener);
  }

  private long writtenBytes(TensorMove move) {
    return move.targetBytes(output.isWhole() ? move.elements() : move.targetElements());
  }

  private long moved() {
    Transfer transfer = current;
    long running = 0;
    if (transfer != null) {
      try {
        running = transfer.progress().bytes();
      } catch (org.windlass.ClosedException over) {
        running = 0;
      }
    }
    return finishedBytes.get() + running;
  }

  /** Moves everything. */
  void run(List<TensorMove> moves) {
    if (moves.isEmpty()) {
      return;
    }
    CommunicatorOptions options = CommunicatorOptions.defaults().deadline(NO_LIMIT);
    try (LocalGroup group = Communicator.local(numbers.count(), options)) {
      watch.run(
          group,
          () -> {
            List<TensorMove> together = new ArrayList<>();
            long bytes = 0;
            for (TensorMove move : moves) {
              long more = Math.max(writtenBytes(move), move.source().bytesOf(move.elements()));
              if (!together.isEmpty() && bytes + more > STEP_BYTES) {
                step(group, together);
                together.clear();
                bytes = 0;
              }
              together.add(move);
              bytes += more;
            }
            step(group, together);
          });
    }
  }

  private void step(LocalGroup group, List<TensorMove> moves) {
    in.files().forEach(SafetensorsFile::checkLength);
    Step step = new Step(numbers);
    List<PackedBits> packed = new ArrayList<>();
    for (TensorMove move : moves) {
      boolean narrow = move.source().bits() < 8;
      Source source = Source.of(in, move, targetRanks);
      Layout to = output.layout(move);
      Map<Integer, Stored> targets = targets(move, to);
      if (narrow) {
        packed.add(new PackedBits(move, source, to, targets));
      } else {
        step.add(move, source, to, targets, output.isWhole());
      }
    }
    group.run(
        comm -> {
          int rank = numbers.rank(comm.rank());
          packed.forEach(tensor -> tensor.run(rank));
          if (!step.isEmpty()) {
            transfer(comm, step);
          }
        });
    step.finish();
    finishedBytes.addAndGet(moves.stream().mapToLong(this::writtenBytes).sum());
  }

  private Map<Integer, Stored> targets(TensorMove move, Layout to) {
    Map<Integer, Stored> targets = new LinkedHashMap<>();
    Stored whole = null;
    for (int rank : to.mesh().ranks()) {
      if (whole == null) {
        Stored stored = Stored.of(output.file(move.name(), rank), move.name());
        whole = output.isWhole() ? stored : null;
        targets.put(rank, stored);
      } else {
        targets.put(rank, whole);
      }
    }
    return targets;
  }

  private void transfer(Communicator comm, Step step) {
    Batch batch = comm.batch().mode(mode);
    bucketBytes.ifPresent(batch::bucketBytes);
    step.addTo(batch, comm.rank());
    try (Transfer transfer = batch.register(NO_LIMIT)) {
      if (comm.rank() == 0) {
        current = transfer;
      }
      transfer.run(1, NO_LIMIT);
    } finally {
      if (comm.rank() == 0) {
        current = null;
      }
    }
  }
}
