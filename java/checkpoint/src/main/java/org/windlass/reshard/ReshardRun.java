// SPDX-License-Identifier: Apache-2.0
package org.windlass.reshard;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.LinkOption;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.function.Consumer;
import org.jspecify.annotations.Nullable;
import org.windlass.DType;
import org.windlass.LocalGroup;
import org.windlass.checkpoint.Checkpoint;
import org.windlass.checkpoint.CheckpointWriter;
import org.windlass.checkpoint.FileFault;
import org.windlass.error.InvalidArgumentException;
import org.windlass.error.WindlassException;
import org.windlass.reshard.check.LostValues;
import org.windlass.reshard.move.Mover;
import org.windlass.reshard.move.Overflows;
import org.windlass.reshard.move.Padding;
import org.windlass.reshard.move.Team;
import org.windlass.reshard.output.EarlySync;
import org.windlass.reshard.output.OtherFiles;
import org.windlass.reshard.output.Output;
import org.windlass.reshard.request.MoveList;
import org.windlass.reshard.request.RequestFingerprint;
import org.windlass.reshard.request.ReshardRequest;
import org.windlass.reshard.tensor.TargetTensor;
import org.windlass.reshard.tensor.TensorMove;
import org.windlass.verify.SlowCheck;

/**
 * Runs one process's share of a redistribution. The process of rank 0 creates OUT and gives it its
 * name. All processes write its content.
 */
final class ReshardRun implements AutoCloseable {
  private final long begin = System.nanoTime();
  private final ReshardRequest request;
  private final ProgressListener listener;
  private final Consumer<String> warnings;
  private final List<String> warned = new ArrayList<>();
  private final Cancellation cancellation;
  private final Checkpoint in;
  private final MoveList list;
  private final OtherFiles others;

  /** Path of OUT's content until it is complete; null before the content exists. */
  private @Nullable Path staged;

  /**
   * Plans the run.
   *
   * @param listener receives the progress
   * @param warnings receives warnings about requests that are valid but seldom intended
   * @param cancellation ends the run early, and holds its group and its writer
   * @throws org.windlass.error.WindlassException if the request cannot be fulfilled
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
    checkPaths(request.in(), request.out());
    checkNew();
    in = Checkpoint.open(request.in());
    try {
      list = new MoveList(in, request, this::warn);
      others = OtherFiles.of(in, request.writesFolder());
      list.moves().forEach(TensorMove::require);
    } catch (Throwable refused) {
      in.close();
      throw refused;
    }
  }

  private void warn(String text) {
    warned.add(text);
    warnings.accept(text);
  }

  /**
   * Returns the number of ranks to start if all ranks are threads of this process: one for each
   * core.
   */
  int threads() {
    return list.moves().isEmpty()
        ? 1
        : Math.min(Runtime.getRuntime().availableProcessors(), Team.MOST_WORKERS);
  }

  /**
   * Redistributes the checkpoint, together with the processes of the group's other ranks.
   *
   * @throws org.windlass.error.WindlassException if the run fails; the disk is then as before
   */
  ReshardResult run(LocalGroup group) {
    cancellation.moving(group);
    try (Team team =
        Team.open(group, () -> RequestFingerprint.of(request, in, list), request.deadline)) {
      return team.isFirst() ? lead(team) : follow(team);
    } catch (WindlassException failure) {
      throw named(failure);
    }
  }

  /** Returns a copy of {@code failure} whose message names OUT instead of the work folder. */
  private WindlassException named(WindlassException failure) {
    String said = String.valueOf(failure.getMessage());
    String shown = named(said);
    return shown.equals(said)
        ? failure
        : WindlassException.of(
            failure.code().number(), shown, failure, failure.operation(), failure.faultyRanks());
  }

  private String named(String message) {
    return staged == null
        ? message
        : message.replace(staged.toString(), request.out().toString());
  }

  private ReshardResult lead(Team team) {
    try (CheckpointWriter writer =
        cancellation.writing(() -> CheckpointWriter.begin(request.out(), request.force))) {
      try {
        return lead(team, writer);
      } catch (Throwable failure) {
        // This aborts before the files are removed. Otherwise the other processes would report
        // missing files.
        team.abort(named("reshard: rank 0 ended with " + failure));
        throw failure;
      }
    }
  }

  private ReshardResult lead(Team team, CheckpointWriter writer) {
    Padding.requireZeros(in, list.moves(), team, cancellation::check);
    LostValues.look(in, list.moves(), this::warn);
    long verifying = 0;
    if (request.verify) {
      verifying +=
          nanos(() -> SlowCheck.compareReplicas(in, list.moves(), cancellation::check));
    }
    staged = writer.staged().toAbsolutePath();
    Output output = new Output(request, list);
    output.create(writer);
    others.copyTo(writer);
    team.made(staged);
    Overflows overflows = new Overflows(in, list.moves());
    Mover.Moved moved;
    try (EarlySync sync = new EarlySync(writer)) {
      moved = mover(team, output, overflows).run(sync::wrote);
    }
    overflows.tell(this::warn, cancellation::check);
    writer.sync();
    if (request.verify) {
      verifying +=
          nanos(() -> SlowCheck.compare(in, list.moves(), output, cancellation::check));
    }
    cancellation.check();
    writer.commit();
    team.named();
    return result(output, moved, (System.nanoTime() - begin - verifying) / 1e9);
  }

  /** Runs this process's share of the work if rank 0 is in another process. */
  private ReshardResult follow(Team team) {
    staged = team.awaitMade(cancellation::check);
    Overflows overflows = new Overflows(in, list.moves());
    Output output = new Output(request, list);
    Mover.Moved moved;
    try (output) {
      open(output);
      moved = mover(team, output, overflows).run(bytes -> {});
    }
    team.awaitNamed(cancellation::check);
    return result(output, moved, (System.nanoTime() - begin) / 1e9);
  }

  private Mover mover(Team team, Output output, Overflows overflows) {
    return new Mover(
        in,
        team,
        output,
        list.moves(),
        overflows,
        request,
        moved -> listener.progress(moved, output.bytes()),
        cancellation::check);
  }

  private void open(Output output) {
    try {
      output.open(Objects.requireNonNull(staged));
    } catch (WindlassException failure) {
      // When a run fails, its files are removed. Then the check throws the reason.
      cancellation.check();
      throw failure;
    }
  }

  @Override
  public void close() {
    in.close();
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
            out + ": OUT is " + (written.equals(read) ? "IN itself" : "inside IN, " + in)
                + "; name a path outside IN");
      }
      if (read.startsWith(written)) {
        throw new InvalidArgumentException(
            out + ": IN, " + in + ", is inside OUT; name another path");
      }
    } catch (IOException fault) {
      throw new InvalidArgumentException(out + ": cannot be resolved: " + fault.getMessage(), fault);
    }
  }

  private void checkNew() {
    Path out = request.out();
    if (!request.force && Files.exists(out, LinkOption.NOFOLLOW_LINKS)) {
      throw new InvalidArgumentException(
          out + ": "
              + FileFault.link(out)
                  .map(link -> link + "; OUT can't replace a link, so name the target of the link")
                  .orElse("exists already; force() replaces what Windlass wrote"));
    }
  }

  private ReshardResult result(Output output, Mover.Moved moved, double seconds) {
    long bytesIn =
        in.files().stream()
            .mapToLong(file -> file.header().fileBytes() - file.header().dataStart())
            .sum();
    long defaulted = list.targets().stream().filter(TargetTensor::defaulted).count();
    return new ReshardResult(
        list.targets().size(),
        (int) defaulted,
        bytesIn,
        output.bytes(),
        moved.sentBytes(),
        moved.localBytes(),
        seconds,
        casts(output, list.moves()),
        request.verify,
        others.copiedNames(),
        others.leftOut(),
        warned);
  }

  private static List<ReshardResult.Cast> casts(Output output, List<TensorMove> moves) {
    Map<List<DType>, Long> bytes = new LinkedHashMap<>();
    for (TensorMove move : moves) {
      TargetTensor target = move.target();
      long replicas = target.bytes() == 0 ? 0 : output.bytes(target) / target.bytes();
      DType source = move.source().dtype();
      long read = replicas * source.bytesOf(TargetTensor.elements(move.shape()));
      bytes.merge(List.of(source, target.dtype()), read, Long::sum);
    }
    List<ReshardResult.Cast> casts = new ArrayList<>();
    bytes.forEach((of, read) -> casts.add(new ReshardResult.Cast(of.get(0), of.get(1), read)));
    return casts;
  }
}
