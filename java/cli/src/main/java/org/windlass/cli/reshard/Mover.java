// SPDX-License-Identifier: Apache-2.0
package org.windlass.cli.reshard;

import java.time.Duration;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashMap;
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
import org.windlass.checkpoint.CheckpointWriter;
import org.windlass.checkpoint.SafetensorsFile;

/** Moves tensors from mapped files to mapped files, with a thread of this process for each rank. */
final class Mover {
  // What a step moves stays in the caches until it is written.
  private static final long STEP_BYTES = 8L << 20;
  // Longer than any step: the watch alone ends what makes no progress.
  private static final Duration NO_LIMIT = Duration.ofDays(7);

  private final Checkpoint in;
  private final CheckpointWriter writer;
  private final Output output;
  private final List<TensorMove> moves;
  private final List<Integer> targetRanks;
  private final TransferMode mode;
  private final OptionalLong bucketBytes;
  private final RankNumbers numbers;
  private final ProgressWatch watch;
  private final AtomicLong finishedBytes = new AtomicLong();
  private volatile Transfer current;

  Mover(
      Checkpoint in,
      CheckpointWriter writer,
      Output output,
      MoveList list,
      ReshardRequest request,
      ProgressListener listener) {
    this.in = in;
    this.writer = writer;
    this.output = output;
    this.moves = list.moves();
    this.targetRanks = list.targetRanks();
    this.mode = request.mode();
    this.bucketBytes = request.bucketBytes();
    List<Layout> layouts = new ArrayList<>();
    for (TensorMove move : moves) {
      if (in.byRank()) {
        layouts.add(move.source().from());
      }
      layouts.add(move.target().to());
    }
    this.numbers = RankNumbers.of(layouts);
    long total = list.targets().stream().mapToLong(output::bytes).sum();
    this.watch = new ProgressWatch(request.deadline(), this::moved, total, listener);
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

  /** Moves everything, and returns when it is on the disk. */
  void run() {
    if (!moves.isEmpty()) {
      CommunicatorOptions options = CommunicatorOptions.defaults().deadline(NO_LIMIT);
      try (LocalGroup group = Communicator.local(numbers.count(), options);
          Arena arena = new Arena(STEP_BYTES);
          EarlySync sync = new EarlySync(writer)) {
        watch.run(group, () -> steps(group, arena, sync));
      }
    }
    writer.sync();
  }

  private void steps(LocalGroup group, Arena arena, EarlySync sync) {
    Map<TargetTensor, List<TensorMove>> parts = new LinkedHashMap<>();
    for (TensorMove move : moves) {
      parts.computeIfAbsent(move.target(), target -> new ArrayList<>()).add(move);
    }
    Step step = new Step(numbers);
    for (TargetTensor target : parts.keySet()) {
      for (Window window : windows(target)) {
        Map<Integer, long[]> shapes = shapes(target, window);
        if (shapes.isEmpty()) {
          continue;
        }
        long bytes =
            shapes.values().stream()
                .mapToLong(shape -> Arena.rounded(bytes(target, shape)))
                .sum();
        if (!arena.fits(bytes)) {
          run(group, step);
          sync.wrote(step.bytes());
          step = new Step(numbers);
          arena.reset(bytes);
        }
        Map<Integer, Staged> staged = stage(target, window, shapes, arena);
        staged.values().stream().distinct().forEach(step::add);
        for (TensorMove move : parts.get(target)) {
          addLegs(step, move, window, staged);
        }
      }
    }
    run(group, step);
  }

  private List<Window> windows(TargetTensor target) {
    Layout layout = output.layout(target);
    long[] extents = new long[target.shape().length];
    for (int rank : layout.mesh().ranks()) {
      long[] local = layout.localShape(target.shape(), rank);
      Arrays.setAll(extents, d -> Math.max(extents[d], local[d]));
    }
    int bits = target.dtype().bits();
    return Window.cut(
        extents, (long) bits * layout.mesh().size(), bits < 8 ? 8 : 1, STEP_BYTES);
  }

  private static long bytes(TargetTensor target, long[] shape) {
    return target.dtype().bytesOf(TargetTensor.elements(shape));
  }

  /** The window's extents on each rank that holds some of it. */
  private Map<Integer, long[]> shapes(TargetTensor target, Window window) {
    Layout layout = output.layout(target);
    Map<Integer, long[]> shapes = new LinkedHashMap<>();
    for (int rank : layout.mesh().ranks()) {
      long[] shape = window.shape(layout.localShape(target.shape(), rank));
      if (TargetTensor.elements(shape) > 0) {
        shapes.put(rank, shape);
      }
    }
    return shapes;
  }

  /** Memory for a window on each rank that holds some of it. */
  private Map<Integer, Staged> stage(
      TargetTensor target, Window window, Map<Integer, long[]> shapes, Arena arena) {
    Map<Integer, Staged> staged = new LinkedHashMap<>();
    shapes.forEach(
        (rank, shape) -> {
          long[] local = output.layout(target).localShape(target.shape(), rank);
          staged.put(
              rank,
              new Staged(
                  output.file(target.name(), rank),
                  target.name(),
                  target.dtype(),
                  window.start(local.length),
                  shape,
                  target.dtype().bytesOf(window.firstElement(local)),
                  arena.take(bytes(target, shape))));
        });
    return staged;
  }

  private void addLegs(
      Step step, TensorMove move, Window window, Map<Integer, Staged> staged) {
    Source source = Source.of(in, move, targetRanks);
    List<Leg> legs = move.legs(source.layout(), output.layout(move.target()));
    for (Window.Side side : window.sides()) {
      List<Leg> within = new ArrayList<>();
      legs.forEach(leg -> within.addAll(leg.within(side.dim(), side.begin(), side.end())));
      legs = within;
    }
    for (Leg leg : legs) {
      if (output.isWhole()) {
        Leg shared = output.shared(leg, move.target());
        Staged all = staged.values().iterator().next();
        Map<Integer, Staged> same = new HashMap<>();
        shared.to().mesh().ranks().forEach(rank -> same.put(rank, all));
        step.add(move, shared, source.stored(), same, true);
      } else {
        step.add(move, leg, source.stored(), staged, false);
      }
    }
  }

  private void run(LocalGroup group, Step step) {
    if (step.isEmpty()) {
      return;
    }
    in.files().forEach(SafetensorsFile::checkLength);
    group.run(
        comm -> {
          step.movePacked(numbers.rank(comm.rank()));
          if (step.hasTransfer()) {
            transfer(comm, step);
          }
          comm.barrier();
          step.write(comm.rank(), comm.size());
        });
    step.close();
    finishedBytes.addAndGet(step.bytes());
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
