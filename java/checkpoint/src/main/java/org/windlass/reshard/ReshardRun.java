// SPDX-License-Identifier: Apache-2.0
package org.windlass.reshard;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.LinkOption;
import java.nio.file.Path;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.function.Consumer;
import org.windlass.DType;
import org.windlass.InvalidArgumentException;
import org.windlass.UnsupportedException;
import org.windlass.checkpoint.Checkpoint;
import org.windlass.checkpoint.CheckpointWriter;
import org.windlass.checkpoint.FileFault;
import org.windlass.plan.Plan;
import org.windlass.plan.PlanOptions;

/** One redistribution of a checkpoint on disk. */
final class ReshardRun {
  private final ReshardRequest request;
  private final ProgressListener listener;
  private final Consumer<String> warnings;
  private final Cancellation cancellation;

  /**
   * A run to be.
   *
   * @param listener hears how far it is
   * @param warnings hears of what is odd about the request, and no reason to refuse it
   * @param cancellation ends it early, and learns of what is on the disk until it is over
   */
  ReshardRun(
      ReshardRequest request,
      ProgressListener listener,
      Consumer<String> warnings,
      Cancellation cancellation) {
    this.request = request;
    this.listener = listener;
    this.warnings = warnings;
    this.cancellation = cancellation;
  }

  /**
   * Redistributes.
   *
   * @throws org.windlass.WindlassException with nothing left but what was there before
   */
  ReshardResult run() {
    long begin = System.nanoTime();
    checkPaths(request.in(), request.out());
    checkNew();
    try (Checkpoint in = Checkpoint.open(request.in())) {
      MoveList list = MoveList.of(in, request, warnings);
      OtherFiles others = OtherFiles.of(in, request.writesFolder());
      Moved moved = moved(list.moves());
      Verification verification = new Verification(in, list, cancellation);
      Output output;
      long verifying = 0;
      try (CheckpointWriter writer =
          cancellation.writing(() -> CheckpointWriter.begin(request.out(), request.force()))) {
        if (request.verify()) {
          verifying += nanos(verification::compareReplicas);
        }
        output = Output.create(writer, request, list, in.metadata());
        others.copyTo(writer);
        new Mover(in, writer, output, list, request, listener, cancellation).run();
        if (request.verify()) {
          verifying += nanos(() -> verification.compare(output));
        }
        cancellation.check();
        writer.commit();
      }
      double seconds = (System.nanoTime() - begin - verifying) / 1e9;
      return result(bytesIn(in), output, list, others, moved, seconds);
    }
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
      Path place = CheckpointWriter.place(out);
      Path written = Files.exists(place) ? place.toRealPath() : place;
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
                  .orElse("exists already; force() replaces what Windlass wrote"));
    }
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
      cancellation.check();
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
        casts(output, list.moves()),
        request.verify(),
        others.copiedNames(),
        others.leftOut());
  }

  private static List<ReshardResult.Cast> casts(Output output, List<TensorMove> moves) {
    Map<List<DType>, Long> bytes = new LinkedHashMap<>();
    for (TensorMove move : moves) {
      TargetTensor target = move.target();
      long replicas = target.bytes() == 0 ? 0 : output.bytes(target) / target.bytes();
      DType source = move.source().dtype();
      bytes.merge(
          List.of(source, target.dtype()),
          replicas * source.bytesOf(TargetTensor.elements(move.shape())),
          Long::sum);
    }
    return bytes.entrySet().stream()
        .map(
            each ->
                new ReshardResult.Cast(each.getKey().get(0), each.getKey().get(1), each.getValue()))
        .toList();
  }
}
