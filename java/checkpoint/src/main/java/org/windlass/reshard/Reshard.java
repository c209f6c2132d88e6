// SPDX-License-Identifier: Apache-2.0
package org.windlass.reshard;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.LinkOption;
import java.nio.file.Path;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.function.Consumer;
import org.windlass.DType;
import org.windlass.InvalidArgumentException;
import org.windlass.Plan;
import org.windlass.PlanOptions;
import org.windlass.UnsupportedException;
import org.windlass.checkpoint.Checkpoint;
import org.windlass.checkpoint.CheckpointWriter;
import org.windlass.checkpoint.FileFault;
import org.windlass.internal.Floor;

/** Redistributes a checkpoint on disk. */
public final class Reshard {
  // What the floor is measured on; with its copy larger than most caches.
  private static final long FLOOR_SAMPLE = 16L << 20;
  private static final int FLOOR_ITERATIONS = 3;
  // Tensors of fewer bytes count as a copy, so that there is one measurement for all of them.
  private static final long FLOOR_LEAST = 1L << 20;

  private final ReshardRequest request;
  private final ProgressListener listener;
  private final Consumer<String> warnings;
  private final Consumer<CheckpointWriter> begun;

  private Reshard(
      ReshardRequest request,
      ProgressListener listener,
      Consumer<String> warnings,
      Consumer<CheckpointWriter> begun) {
    this.request = request;
    this.listener = listener;
    this.warnings = warnings;
    this.begun = begun;
  }

  /**
   * Redistributes.
   *
   * @param listener hears how far it is
   * @param warnings hears of what is odd about the request, and no reason to refuse it
   * @param begun gets the writer as soon as there is something on disk; closing it removes that
   * @throws org.windlass.WindlassException with nothing left but what was there before
   */
  public static ReshardResult run(
      ReshardRequest request,
      ProgressListener listener,
      Consumer<String> warnings,
      Consumer<CheckpointWriter> begun) {
    return new Reshard(request, listener, warnings, begun).run();
  }

  private ReshardResult run() {
    long begin = System.nanoTime();
    checkPaths(request.in(), request.out());
    checkNew();
    MoveList list;
    OtherFiles others;
    Moved moved;
    Output output;
    long bytesIn;
    double seconds;
    try (Checkpoint in = Checkpoint.open(request.in())) {
      list = MoveList.of(in, request, warnings);
      others = OtherFiles.of(in, request.writesFolder());
      moved = moved(list.moves());
      Verification verification = new Verification(in, list);
      long verifying = 0;
      try (CheckpointWriter writer = CheckpointWriter.begin(request.out(), request.force())) {
        begun.accept(writer);
        if (request.verify()) {
          verifying += nanos(verification::compareReplicas);
        }
        output = Output.create(writer, request, list, in.metadata());
        others.copyTo(writer);
        new Mover(in, writer, output, list, request, listener).run();
        if (request.verify()) {
          verifying += nanos(() -> verification.compare(output));
        }
        writer.commit();
      }
      seconds = (System.nanoTime() - begin - verifying) / 1e9;
      bytesIn = bytesIn(in);
    }
    // The floor takes memory of its own: IN's is given back by now.
    return result(bytesIn, output, list, others, moved, seconds);
  }

  private static long nanos(Runnable action) {
    long start = System.nanoTime();
    action.run();
    return System.nanoTime() - start;
  }

  private static void checkPaths(Path in, Path out) {
    Path read;
    try {
      read = in.toRealPath();
    } catch (IOException fault) {
      throw FileFault.reading(in, fault);
    }
    try {
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

  private void checkNew() {
    Path out = request.out();
    if (!request.force() && Files.exists(out, LinkOption.NOFOLLOW_LINKS)) {
      throw new InvalidArgumentException(
          out + ": "
              + FileFault.link(out)
                  .map(link -> link + "; OUT takes the place of no link, so name what it leads to")
                  .orElse("exists already; --force replaces what Windlass wrote"));
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

  /** Wire bytes that cross ranks by the layouts' plans, and those that stay on theirs. */
  private record Moved(long sentBytes, long localBytes) {}

  /**
   * What the layouts' plans move; makes every plan, so that a tensor that cannot move is refused
   * before a byte does.
   */
  private Moved moved(List<TensorMove> moves) {
    var sums =
        new Object() {
          long sent;
          long local;
        };
    int turn = 0;
    for (TensorMove move : moves) {
      PlanOptions options = PlanOptions.defaults().withTurn(turn++);
      if (request.bucketBytes().isPresent()) {
        options = options.withBucketBytes(request.bucketBytes().getAsLong());
      }
      for (Leg leg : move.legs()) {
        plan(move, leg, options)
            .forEachRoute(
                route -> {
                  int own = route.targets().contains(route.source()) ? 1 : 0;
                  sums.sent += (route.targets().size() - own) * route.bytes();
                  sums.local += own * route.bytes();
                });
      }
    }
    return new Moved(sums.sent, sums.local);
  }

  private static Plan plan(TensorMove move, Leg leg, PlanOptions options) {
    DType source = move.source().dtype();
    try {
      if (source.bits() < 8) {
        PackedBits.check(move, leg);
      }
      return Plan.of(
          leg.from(),
          leg.to(),
          leg.shape(),
          source,
          move.effectiveWire(),
          move.target().dtype(),
          options);
    } catch (InvalidArgumentException refused) {
      throw new InvalidArgumentException(move.label() + ": " + refused.getMessage(), refused);
    } catch (UnsupportedException refused) {
      throw new UnsupportedException(move.label() + ": " + refused.getMessage(), refused);
    }
  }

  private static long bytesIn(Checkpoint in) {
    return in.files().stream()
        .mapToLong(file -> file.header().fileBytes() - file.header().dataStart())
        .sum();
  }

  private ReshardResult result(
      long bytesIn,
      Output output,
      MoveList list,
      OtherFiles others,
      Moved moved,
      double seconds) {
    long bytesOut = list.targets().stream().mapToLong(output::bytes).sum();
    long defaulted = list.targets().stream().filter(TargetTensor::defaulted).count();
    return new ReshardResult(
        list.targets().size(),
        (int) defaulted,
        bytesIn,
        bytesOut,
        moved.sentBytes(),
        moved.localBytes(),
        seconds,
        floorSeconds(output, list.moves()),
        request.verify(),
        others.copiedNames(),
        others.leftOut());
  }

  /** What copying or casting the written bytes in memory takes. */
  private static double floorSeconds(Output output, List<TensorMove> moves) {
    Map<List<DType>, Long> moved = new HashMap<>();
    for (TensorMove move : moves) {
      TargetTensor target = move.target();
      long replicas = target.bytes() == 0 ? 0 : output.bytes(target) / target.bytes();
      DType source = move.source().dtype();
      long bytes = replicas * source.bytesOf(TargetTensor.elements(move.shape()));
      boolean asBytes = source.code() < 0 || bytes < FLOOR_LEAST;
      moved.merge(
          asBytes ? List.of(DType.U8, DType.U8) : List.of(source, target.dtype()),
          bytes,
          Long::sum);
    }
    return floorSeconds(moved);
  }

  /** The same of so many bytes of a source and a target dtype. */
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
