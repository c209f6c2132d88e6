// SPDX-License-Identifier: Apache-2.0
package org.windlass.cli.reshard;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.function.Consumer;
import org.windlass.DType;
import org.windlass.InvalidArgumentException;
import org.windlass.Layout;
import org.windlass.Plan;
import org.windlass.PlanOptions;
import org.windlass.Traffic;
import org.windlass.UnsupportedException;
import org.windlass.checkpoint.Checkpoint;
import org.windlass.checkpoint.CheckpointWriter;
import org.windlass.checkpoint.SafetensorsFile;
import org.windlass.cli.verify.SlowCheck;
import org.windlass.internal.Floor;

/** Redistributes a checkpoint on disk. */
public final class Reshard {
  // What the floor is measured on; larger than the caches.
  private static final long FLOOR_SAMPLE = 32L << 20;
  private static final int FLOOR_ITERATIONS = 3;
  // Tensors of fewer bytes count as a copy, so that there is one measurement for all of them.
  private static final long FLOOR_LEAST = 1L << 20;

  private final ReshardRequest request;
  private final ProgressListener listener;
  private final Consumer<CheckpointWriter> begun;

  private Reshard(
      ReshardRequest request, ProgressListener listener, Consumer<CheckpointWriter> begun) {
    this.request = request;
    this.listener = listener;
    this.begun = begun;
  }

  /**
   * Redistributes.
   *
   * @param listener hears how far it is
   * @param begun gets the writer as soon as there is something on disk; closing it removes that
   * @throws org.windlass.WindlassException with nothing left but what was there before
   */
  public static ReshardResult run(
      ReshardRequest request, ProgressListener listener, Consumer<CheckpointWriter> begun) {
    return new Reshard(request, listener, begun).run();
  }

  private ReshardResult run() {
    long begin = System.nanoTime();
    checkPaths(request.in(), request.out());
    try (Checkpoint in = Checkpoint.open(request.in())) {
      MoveList list = MoveList.of(in, request);
      List<TensorMove> moves = list.moves();
      List<Integer> ranks = list.targetRanks();
      Traffic traffic = traffic(moves);
      long verifying = 0;
      if (request.verify()) {
        long start = System.nanoTime();
        moves.forEach(move -> check(in, move).compareReplicas());
        verifying += System.nanoTime() - start;
      }
      try (CheckpointWriter writer = CheckpointWriter.begin(request.out(), request.force())) {
        begun.accept(writer);
        Output output = Output.create(writer, request, moves, ranks, in.metadata());
        new Mover(in, output, moves, ranks, request, listener).run(moves);
        writer.sync();
        if (request.verify()) {
          long start = System.nanoTime();
          verify(in, output, moves);
          verifying += System.nanoTime() - start;
        }
        writer.commit();
      }
      double seconds = (System.nanoTime() - begin - verifying) / 1e9;
      return result(in, moves, traffic, seconds);
    }
  }

  private static void checkPaths(Path in, Path out) {
    if (!Files.exists(in)) {
      throw new InvalidArgumentException(in + ": no such file or folder");
    }
    try {
      Path read = in.toRealPath();
      Path written = real(out);
      if (written.startsWith(read)) {
        throw new InvalidArgumentException(
            out + ": OUT is " + (written.equals(read) ? "IN itself" : "inside IN, " + in));
      }
      if (read.startsWith(written)) {
        throw new InvalidArgumentException(out + ": IN, " + in + ", is inside OUT");
      }
    } catch (IOException fault) {
      throw new InvalidArgumentException(out + ": cannot be resolved: " + fault.getMessage(), fault);
    }
  }

  /** The path without links, also where its last name is new. */
  private static Path real(Path path) throws IOException {
    Path absolute = path.toAbsolutePath().normalize();
    if (Files.exists(absolute)) {
      return absolute.toRealPath();
    }
    Path parent = absolute.getParent();
    return parent == null || !Files.exists(parent)
        ? absolute
        : parent.toRealPath().resolve(absolute.getFileName());
  }

  /**
   * What the layouts' plans move; makes every plan, so that a tensor that cannot move is refused
   * before a byte does.
   */
  private Traffic traffic(List<TensorMove> moves) {
    long sent = 0;
    long local = 0;
    int turn = 0;
    for (TensorMove move : moves) {
      PlanOptions options = PlanOptions.defaults().withTurn(turn++);
      if (request.bucketBytes().isPresent()) {
        options = options.withBucketBytes(request.bucketBytes().getAsLong());
      }
      Traffic traffic = plan(move, options).traffic();
      sent += traffic.sentBytes();
      local += traffic.localBytes();
    }
    return new Traffic(List.of(), sent, local, 0);
  }

  private static Plan plan(TensorMove move, PlanOptions options) {
    String name = "tensor \"" + move.name() + "\": ";
    try {
      return Plan.of(
          move.from(),
          move.to(),
          move.shape(),
          move.source(),
          move.effectiveWire(),
          move.target(),
          options);
    } catch (InvalidArgumentException refused) {
      throw new InvalidArgumentException(name + refused.getMessage(), refused);
    } catch (UnsupportedException refused) {
      throw new UnsupportedException(name + refused.getMessage(), refused);
    }
  }

  private static SlowCheck check(Checkpoint in, TensorMove move) {
    return in.byRank()
        ? SlowCheck.ofRanks(
            move.name(), move.shape(), move.from(), move.wire(), rank -> in.ranks().get(rank))
        : SlowCheck.ofWhole(
            move.name(), move.shape(), move.from(), move.wire(), in.whole(move.name()));
  }

  private static void verify(Checkpoint in, Output output, List<TensorMove> moves) {
    Map<Path, SafetensorsFile> reread = new HashMap<>();
    try {
      for (TensorMove move : moves) {
        SlowCheck check = check(in, move);
        Layout to = move.to();
        for (int rank : output.isWhole() ? List.of(to.mesh().lowestRank()) : to.mesh().ranks()) {
          SafetensorsFile file =
              reread.computeIfAbsent(
                  output.file(move.name(), rank).path(), SafetensorsFile::open);
          if (output.isWhole()) {
            check.compareWhole(file);
          } else {
            check.compareRank(to, rank, file);
          }
        }
      }
    } finally {
      reread.values().forEach(SafetensorsFile::close);
    }
  }

  private ReshardResult result(
      Checkpoint in, List<TensorMove> moves, Traffic traffic, double seconds) {
    long bytesIn =
        in.files().stream()
            .mapToLong(file -> file.header().fileBytes() - file.header().dataStart())
            .sum();
    long bytesOut = 0;
    int defaulted = 0;
    Map<List<DType>, Long> moved = new HashMap<>();
    for (TensorMove move : moves) {
      long elements = request.writesWhole() ? move.elements() : move.targetElements();
      bytesOut += move.targetBytes(elements);
      defaulted += move.defaulted() ? 1 : 0;
      long bytes = move.source().bytesOf(elements);
      boolean asBytes = move.source().code() < 0 || bytes < FLOOR_LEAST;
      moved.merge(
          asBytes ? List.of(DType.U8, DType.U8) : List.of(move.source(), move.target()),
          bytes,
          Long::sum);
    }
    return new ReshardResult(
        moves.size(),
        defaulted,
        bytesIn,
        bytesOut,
        traffic.sentBytes(),
        traffic.localBytes(),
        seconds,
        floorSeconds(moved),
        request.verify());
  }

  /** What copying or casting these bytes takes, by source and target dtype. */
  private static double floorSeconds(Map<List<DType>, Long> moved) {
    double seconds = 0;
    for (Map.Entry<List<DType>, Long> entry : moved.entrySet()) {
      DType from = entry.getKey().get(0);
      long bytes = entry.getValue();
      long sample = Math.min(bytes, FLOOR_SAMPLE) / from.bytes() * from.bytes();
      if (sample > 0) {
        seconds +=
            Floor.copyMicros(sample, from, entry.getKey().get(1), FLOOR_ITERATIONS)
                / 1e6
                * ((double) bytes / sample);
      }
    }
    return seconds;
  }
}
