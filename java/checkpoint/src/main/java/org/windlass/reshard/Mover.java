// SPDX-License-Identifier: Apache-2.0
package org.windlass.reshard;

import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.OptionalLong;
import java.util.concurrent.atomic.AtomicLong;
import org.windlass.Communicator;
import org.windlass.CommunicatorOptions;
import org.windlass.LocalGroup;
import org.windlass.Tensor;
import org.windlass.UnsupportedException;
import org.windlass.checkpoint.Checkpoint;
import org.windlass.checkpoint.CheckpointWriter;
import org.windlass.checkpoint.SafetensorsFile;
import org.windlass.internal.Native;
import org.windlass.layout.Layout;
import org.windlass.layout.Placement;
import org.windlass.plan.TransferMode;
import org.windlass.redistribute.Batch;
import org.windlass.redistribute.Transfer;

/**
 * Moves tensors from files to files. What the target ranks take of a tensor is read in boxes that
 * stay in the caches, cut by a transfer among a few threads, and written: the work follows the
 * bytes, whatever number of ranks the layouts have.
 */
final class Mover {
  // What a step moves stays in the caches until it is written.
  private static final long STEP_BYTES = 8L << 20;
  // More do not read and write faster, and each takes part in every step.
  private static final int MOST_WORKERS = 16;
  // Longer than any step: the watch alone ends what makes no progress.
  private static final Duration NO_LIMIT = Duration.ofDays(7);

  private final Checkpoint in;
  private final CheckpointWriter writer;
  private final Output output;
  private final List<TensorMove> moves;
  private final Cancellation cancellation;
  private final TransferMode mode;
  private final OptionalLong bucketBytes;
  private final int workers;
  private final ProgressWatch watch;
  private final AtomicLong finishedBytes = new AtomicLong();
  private final AtomicLong calls = new AtomicLong();
  private final List<ByteBuffer> scratch = new ArrayList<>();
  private volatile Transfer current;

  Mover(
      Checkpoint in,
      CheckpointWriter writer,
      Output output,
      MoveList list,
      ReshardRequest request,
      ProgressListener listener,
      Cancellation cancellation) {
    this.in = in;
    this.writer = writer;
    this.output = output;
    this.moves = list.moves();
    this.cancellation = cancellation;
    this.mode = request.mode();
    this.bucketBytes = request.bucketBytes();
    this.workers = workers(moves);
    for (int i = 0; i < Math.min(workers, MOST_WORKERS); i++) {
      scratch.add(
          ByteBuffer.allocateDirect(FileRead.SCRATCH_BYTES).order(ByteOrder.nativeOrder()));
    }
    long total = list.targets().stream().mapToLong(output::bytes).sum();
    this.watch = new ProgressWatch(request.deadline(), this::moved, calls::get, total, listener);
  }

  /** A rank for each core, and for each term of the largest reduction. */
  private static int workers(List<TensorMove> moves) {
    int terms =
        moves.stream().mapToInt(move -> terms(move.source().from())).max().orElse(1);
    if (terms > Native.WL_MAX_RANKS) {
      throw new UnsupportedException(
          "a source layout has " + terms + " terms; at most " + Native.WL_MAX_RANKS
              + " are reduced");
    }
    return Math.max(terms, Math.min(Runtime.getRuntime().availableProcessors(), MOST_WORKERS));
  }

  private static int terms(Layout from) {
    int terms = 1;
    for (int m = 0; m < from.mesh().ndim(); m++) {
      if (from.placements().get(m) instanceof Placement.Partial) {
        terms *= from.mesh().size(m);
      }
    }
    return terms;
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
      CommunicatorOptions options = CommunicatorOptions.defaults().withDeadline(NO_LIMIT);
      try (LocalGroup group = Communicator.local(workers, options);
          Arena arena = new Arena(STEP_BYTES);
          EarlySync sync = new EarlySync(writer)) {
        cancellation.moving(group);
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
    Step step = new Step(workers, calls);
    for (Map.Entry<TargetTensor, List<TensorMove>> entry : parts.entrySet()) {
      TargetTensor target = entry.getKey();
      Map<Integer, Runs> held = held(target);
      Map<TensorMove, SourceFiles> files = new LinkedHashMap<>();
      entry.getValue().forEach(move -> files.put(move, new SourceFiles(in, move.source())));
      for (Window window : windows(target, held, files)) {
        cancellation.check();
        Map<Integer, long[]> shapes = shapes(held, window);
        if (shapes.isEmpty()) {
          continue;
        }
        List<Needed> needed = new ArrayList<>();
        if (target.dtype().bits() >= 8) {
          files.keySet().forEach(move -> needed.addAll(Needed.of(move, window, shapes, held)));
        }
        long bytes = 0;
        for (long[] shape : shapes.values()) {
          bytes += Arena.rounded(bytes(target, shape));
        }
        for (Needed box : needed) {
          bytes += Arena.rounded(box.bytes()) * files.get(box.move()).terms();
        }
        if (!arena.fits(bytes)) {
          run(group, step);
          sync.wrote(step.bytes());
          step = new Step(workers, calls);
          arena.reset(bytes);
        }
        Map<Integer, Staged> staged = stage(target, window, held, shapes, arena);
        staged.values().forEach(step::add);
        for (Needed box : needed) {
          add(step, box, files.get(box.move()), staged, arena);
        }
        if (target.dtype().bits() < 8) {
          for (TensorMove move : files.keySet()) {
            addPacked(step, move, window, staged);
          }
        }
      }
    }
    run(group, step);
  }

  /** What each rank that a target is written for holds of it. */
  private Map<Integer, Runs> held(TargetTensor target) {
    Layout layout = output.layout(target);
    Map<Integer, Runs> held = new LinkedHashMap<>();
    for (int rank : layout.mesh().ranks()) {
      held.put(
          rank,
          target.fuse().isPresent()
              ? target.fuse().get().runs(target.shape(), rank)
              : Runs.of(layout, target.shape(), rank));
    }
    return held;
  }

  private List<Window> windows(
      TargetTensor target, Map<Integer, Runs> held, Map<TensorMove, SourceFiles> files) {
    long[] extents = new long[target.shape().length];
    long elements = 0;
    for (Runs runs : held.values()) {
      long[] local = runs.shape();
      Arrays.setAll(extents, d -> Math.max(extents[d], local[d]));
      elements += TargetTensor.elements(local);
    }
    int bits = target.dtype().bits();
    // What is read takes memory too, once for all replicas of what is written.
    long read = 0;
    for (Map.Entry<TensorMove, SourceFiles> entry : files.entrySet()) {
      read =
          Math.max(read, (long) entry.getKey().source().dtype().bits() * entry.getValue().terms());
    }
    double replicas = (double) elements / Math.max(TargetTensor.elements(target.shape()), 1);
    long perElement = bits + (long) Math.ceil(read / Math.max(replicas, 1));
    return Window.cut(extents, perElement * held.size(), bits < 8 ? 8 : 1, STEP_BYTES);
  }

  private static long bytes(TargetTensor target, long[] shape) {
    return target.dtype().bytesOf(TargetTensor.elements(shape));
  }

  /** The window's extents on each rank that holds some of it. */
  private static Map<Integer, long[]> shapes(Map<Integer, Runs> held, Window window) {
    Map<Integer, long[]> shapes = new LinkedHashMap<>();
    held.forEach(
        (rank, runs) -> {
          long[] shape = window.shape(runs.shape());
          if (TargetTensor.elements(shape) > 0) {
            shapes.put(rank, shape);
          }
        });
    return shapes;
  }

  /** Memory for a window on each rank that holds some of it. */
  private Map<Integer, Staged> stage(
      TargetTensor target,
      Window window,
      Map<Integer, Runs> held,
      Map<Integer, long[]> shapes,
      Arena arena) {
    Map<Integer, Staged> staged = new LinkedHashMap<>();
    shapes.forEach(
        (rank, shape) ->
            staged.put(
                rank,
                new Staged(
                    output.file(target.name(), rank),
                    target.name(),
                    target.dtype(),
                    window.start(shape.length),
                    shape,
                    target.dtype().bytesOf(window.firstElement(held.get(rank).shape())),
                    arena.take(bytes(target, shape)))));
    return staged;
  }

  /** Has a box read, and its parts moved to the windows that take them. */
  private static void add(
      Step step, Needed box, SourceFiles files, Map<Integer, Staged> staged, Arena arena) {
    TensorMove move = box.move();
    long[] start = move.axes().stored(box.start());
    long[] shape = move.axes().stored(box.shape());
    List<Tensor> terms = new ArrayList<>();
    for (int term = 0; term < files.terms(); term++) {
      Tensor memory = arena.take(box.bytes());
      step.add(files.reads(term, start, shape, memory));
      terms.add(
          move.axes()
              .view(
                  Tensor.of(
                      memory.address(), memory.bytes(), memory, move.source().dtype(), shape)));
    }
    for (Needed.Cut cut : box.cuts()) {
      long[] at = cut.start().clone();
      Arrays.setAll(at, d -> at[d] - box.start()[d]);
      List<Tensor> parts =
          terms.stream().map(term -> narrowed(term, at, cut.shape())).toList();
      Tensor window = staged.get(cut.rank()).elements();
      step.add(move, parts, narrowed(window, cut.place(), cut.shape()));
    }
  }

  private static Tensor narrowed(Tensor all, long[] start, long[] shape) {
    Tensor view = all;
    for (int d = 0; d < start.length; d++) {
      view = view.narrow(d, start[d], shape[d]);
    }
    return view;
  }

  private void addPacked(
      Step step, TensorMove move, Window window, Map<Integer, Staged> staged) {
    PackedSource source = PackedSource.of(in, move);
    List<Leg> legs = move.legs(source.layout(), output.layout(move.target()));
    for (Window.Side side : window.sides()) {
      List<Leg> within = new ArrayList<>();
      legs.forEach(leg -> within.addAll(leg.within(side.dim(), side.begin(), side.end())));
      legs = within;
    }
    for (Leg leg : legs) {
      step.add(new PackedBits(move, leg, source.stored(), staged));
    }
  }

  private void run(LocalGroup group, Step step) {
    if (step.isEmpty()) {
      return;
    }
    in.files().forEach(SafetensorsFile::checkLength);
    group.run(
        comm -> {
          if (comm.rank() < scratch.size()) {
            step.read(scratch.get(comm.rank()));
          }
          step.movePacked(comm.rank());
          comm.barrier();
          if (comm.rank() < scratch.size()) {
            step.copy(scratch.get(comm.rank()));
          }
          if (step.hasTransfer()) {
            transfer(comm, step);
          }
          comm.barrier();
          step.write(comm.rank(), comm.size());
        });
    finishedBytes.addAndGet(step.bytes());
  }

  private void transfer(Communicator comm, Step step) {
    Batch batch = Batch.of(comm).mode(mode);
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
