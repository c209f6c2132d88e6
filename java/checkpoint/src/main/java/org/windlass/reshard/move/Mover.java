// SPDX-License-Identifier: Apache-2.0
package org.windlass.reshard.move;

import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.OptionalLong;
import java.util.concurrent.atomic.AtomicLong;
import java.util.function.LongConsumer;
import org.jspecify.annotations.Nullable;
import org.windlass.Collectives;
import org.windlass.Communicator;
import org.windlass.Tensor;
import org.windlass.checkpoint.Checkpoint;
import org.windlass.checkpoint.SafetensorsFile;
import org.windlass.layout.Layout;
import org.windlass.plan.TransferMode;
import org.windlass.reshard.output.Output;
import org.windlass.reshard.request.ReshardRequest;
import org.windlass.reshard.tensor.Leg;
import org.windlass.reshard.tensor.Runs;
import org.windlass.reshard.tensor.TargetTensor;
import org.windlass.reshard.tensor.TensorMove;
import org.windlass.transfer.Transfer;
import org.windlass.transfer.TransferBuilder;

/**
 * Moves tensors from files to files.
 *
 * <p>It reads the target ranks' parts of a tensor in boxes that stay in the caches. A few workers
 * copy the boxes' parts to windows of the targets, or reduce them in a transfer. Then they write
 * the windows. So the work depends on the bytes, and not on the number of ranks in the layouts.
 * Every process computes the same steps, and the processes share each step.
 */
public final class Mover {
  // The data of one step stays in the caches until it is written.
  private static final long STEP_BYTES = 8L << 20;

  private final Checkpoint in;
  private final Team team;
  private final Output output;
  private final List<TensorMove> moves;
  private final Overflows overflows;
  private final Runnable check;
  private final TransferMode mode;
  private final OptionalLong bucketBytes;
  private final ProgressWatch watch;
  private final AtomicLong finishedBytes = new AtomicLong();
  private final List<ByteBuffer> scratch = new ArrayList<>();
  private volatile @Nullable Transfer current;

  /**
   * Creates a mover.
   *
   * @param progress receives the number of bytes that have moved
   * @param check throws an exception if the run must end
   */
  public Mover(
      Checkpoint in,
      Team team,
      Output output,
      List<TensorMove> moves,
      Overflows overflows,
      ReshardRequest request,
      LongConsumer progress,
      Runnable check) {
    this.in = in;
    this.team = team;
    this.output = output;
    this.moves = moves;
    this.overflows = overflows;
    this.check = check;
    this.mode = request.mode();
    this.bucketBytes = request.bucketBytes();
    for (int i = 0; i < team.workersHere(); i++) {
      scratch.add(
          ByteBuffer.allocateDirect(FileRead.SCRATCH_BYTES).order(ByteOrder.nativeOrder()));
    }
    this.watch =
        new ProgressWatch(request.deadline(), this::moved, team::calls, output.bytes(), progress);
  }

  private long moved() {
    Transfer transfer = current;
    long running = 0;
    if (transfer != null) {
      try {
        running = transfer.progress().bytes();
      } catch (org.windlass.error.ClosedException over) {
        running = 0;
      }
    }
    return finishedBytes.get() + running;
  }

  /**
   * Moves everything. This is a collective operation.
   *
   * @param wrote receives the number of bytes of each write
   */
  public void run(LongConsumer wrote) {
    if (!moves.isEmpty()) {
      watch.run(
          team,
          () -> {
            try (Arena arena = new Arena(team, STEP_BYTES)) {
              steps(arena, wrote);
            }
            overflows.share(team);
          });
    }
  }

  private void steps(Arena arena, LongConsumer wrote) {
    Map<TargetTensor, List<TensorMove>> parts = new LinkedHashMap<>();
    for (TensorMove move : moves) {
      parts.computeIfAbsent(move.target(), target -> new ArrayList<>()).add(move);
    }
    Step step = Step.first(team);
    for (Map.Entry<TargetTensor, List<TensorMove>> entry : parts.entrySet()) {
      TargetTensor target = entry.getKey();
      Map<Integer, Runs> held = held(target);
      Map<TensorMove, SourceFiles> files = new LinkedHashMap<>();
      entry.getValue().forEach(move -> files.put(move, new SourceFiles(in, move.source())));
      for (Window window : windows(target, held, files)) {
        check.run();
        Map<Integer, long[]> shapes = shapes(held, window);
        if (shapes.isEmpty()) {
          continue;
        }
        List<Needed> needed = new ArrayList<>();
        if (target.dtype().bits() >= 8) {
          files.keySet().forEach(move -> needed.addAll(Needed.of(move, window, shapes, held)));
        }
        List<Arena.Piece> pieces = new ArrayList<>();
        shapes.values().forEach(shape -> pieces.add(piece(target, shape)));
        for (Needed box : needed) {
          int terms = Objects.requireNonNull(files.get(box.move())).terms();
          for (int term = 0; term < terms; term++) {
            pieces.add(piece(box, term, terms));
          }
        }
        if (!arena.fits(pieces)) {
          run(step);
          wrote.accept(step.bytes());
          step = step.next();
          arena.reset(pieces);
        }
        Map<Integer, Staged> staged = stage(target, window, held, shapes, arena);
        staged.values().forEach(step::add);
        for (Needed box : needed) {
          add(step, box, Objects.requireNonNull(files.get(box.move())), staged, arena);
        }
        if (target.dtype().bits() < 8) {
          for (TensorMove move : files.keySet()) {
            addPacked(step, move, window, staged);
          }
        }
      }
    }
    run(step);
  }

  /** Returns each rank's part of the target, for the ranks in its files. */
  private Map<Integer, Runs> held(TargetTensor target) {
    Layout layout = output.layout(target);
    Map<Integer, Runs> held = new LinkedHashMap<>();
    for (int rank : layout.mesh().ranks()) {
      held.put(
          rank,
          target.fuse().isPresent()
              ? target.held(rank)
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
    // The boxes to read take memory too, once for all replicas of the written data.
    long read = 0;
    for (Map.Entry<TensorMove, SourceFiles> entry : files.entrySet()) {
      read =
          Math.max(read, (long) entry.getKey().source().dtype().bits() * entry.getValue().terms());
    }
    double replicas = (double) elements / Math.max(TargetTensor.elements(target.shape()), 1);
    long perElement = bits + (long) Math.ceil(read / Math.max(replicas, 1));
    return Window.cut(extents, perElement * held.size(), bits < 8 ? 8 : 1, STEP_BYTES);
  }

  /** Returns the memory for a window of a target. */
  private static Arena.Piece piece(TargetTensor target, long[] shape) {
    return new Arena.Piece(
        target.dtype().bytesOf(TargetTensor.elements(shape)), Arena.ANYWHERE);
  }

  /** Returns the memory for a term of a box. If there are several terms, a rank provides each. */
  private static Arena.Piece piece(Needed box, int term, int terms) {
    return new Arena.Piece(box.bytes(), terms > 1 ? term : Arena.ANYWHERE);
  }

  /** Returns the window's extents on each rank that holds some of it. */
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

  /** Allocates memory for a window on each rank that holds some of it. */
  private Map<Integer, Staged> stage(
      TargetTensor target,
      Window window,
      Map<Integer, Runs> held,
      Map<Integer, long[]> shapes,
      Arena arena) {
    Map<Integer, Staged> staged = new LinkedHashMap<>();
    shapes.forEach(
        (rank, shape) -> {
          Arena.Taken taken = arena.take(piece(target, shape));
          long first = window.firstElement(Objects.requireNonNull(held.get(rank)).shape());
          staged.put(
              rank,
              new Staged(
                  output.file(target, rank),
                  target,
                  window.start(shape.length),
                  shape,
                  target.dtype().bytesOf(first),
                  taken.memory(),
                  overflows.watch(target),
                  taken.rank()));
        });
    return staged;
  }

  /** Adds the read of a box, and the moves of its parts to their windows. */
  private static void add(
      Step step, Needed box, SourceFiles files, Map<Integer, Staged> staged, Arena arena) {
    TensorMove move = box.move();
    long[] start = move.axes().stored(box.start());
    long[] shape = move.axes().stored(box.shape());
    List<Tensor> terms = new ArrayList<>();
    for (int term = 0; term < files.terms(); term++) {
      Tensor memory = arena.take(piece(box, term, files.terms())).memory();
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
      Staged window = Objects.requireNonNull(staged.get(cut.rank()));
      Tensor target = narrowed(window.elements(), cut.place(), cut.shape());
      step.add(move, parts, target, window.home());
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

  private void run(Step step) {
    if (step.isEmpty()) {
      return;
    }
    in.files().forEach(SafetensorsFile::checkLength);
    team.group().run(comm -> run(step, comm));
    finishedBytes.addAndGet(step.bytes());
  }

  private void run(Step step, Communicator comm) {
    Collectives unlimited = comm.withDeadline(Team.NO_LIMIT);
    int place = team.place(comm);
    boolean works = place < scratch.size();
    if (works) {
      step.read(scratch.get(place));
    }
    step.movePacked(comm.rank());
    unlimited.barrier();
    if (works) {
      step.copy(scratch.get(place));
    }
    if (step.hasTransfer()) {
      transfer(comm, step);
    }
    unlimited.barrier();
    step.write(comm.rank());
    if (!team.isWhole()) {
      // The next step reuses the memory, and the code after the last step uses the files.
      unlimited.barrier();
    }
  }

  private void transfer(Communicator comm, Step step) {
    TransferBuilder builder = TransferBuilder.of(comm).defaultMode(mode);
    bucketBytes.ifPresent(builder::defaultBucketBytes);
    step.addTo(builder, comm.rank());
    boolean shows = team.place(comm) == 0;
    try (Transfer transfer = builder.register(Team.NO_LIMIT)) {
      if (shows) {
        current = transfer;
      }
      transfer.run(1, Team.NO_LIMIT);
    } finally {
      if (shows) {
        current = null;
      }
    }
  }
}
