// SPDX-License-Identifier: Apache-2.0
package org.windlass.reshard;

import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Objects;
import java.util.Optional;
import java.util.OptionalLong;
import java.util.function.Consumer;
import java.util.function.Function;
import org.windlass.Communicator;
import org.windlass.CommunicatorOptions;
import org.windlass.DType;
import org.windlass.LocalGroup;
import org.windlass.error.InvalidArgumentException;
import org.windlass.error.WindlassException;
import org.windlass.internal.Deadline;
import org.windlass.kernel.Target;
import org.windlass.layout.Layout;
import org.windlass.plan.TransferMode;
import org.windlass.reshard.move.Team;
import org.windlass.reshard.request.ReshardRequest;
import org.windlass.reshard.tensor.Casts;

/**
 * Redistributes a checkpoint on disk from one layout to another:
 *
 * <pre>{@code
 * ReshardResult result =
 *     Reshard.from(Layout.parse("2x4:P,S0"))
 *         .to("1x3@8:R,S1")
 *         .in(Path.of("step-1000"))
 *         .out(Path.of("serving"))
 *         .dtype(DType.BF16)
 *         .progress((moved, total) -> System.out.println(moved + " of " + total))
 *         .run();
 * }</pre>
 *
 * <p>One thread makes the settings and then calls {@link #run} once. The output appears complete or
 * not at all.
 */
public final class Reshard {
  private final ReshardRequest request;
  private final Cancellation cancellation = new Cancellation();
  private Optional<Target> target = Optional.empty();
  private ProgressListener progress = (moved, total) -> {};
  private Consumer<String> warnings = text -> {};

  private Reshard(Optional<Layout> from) {
    request = new ReshardRequest(from);
  }

  /**
   * Starts a redistribution from tensors of this layout, unless a rule gives a tensor another one.
   * If a tensor lacks a dimension that the layout shards, the tensor is replicated instead.
   */
  public static Reshard from(Layout layout) {
    return new Reshard(Optional.of(Objects.requireNonNull(layout, "layout")));
  }

  /** Starts a redistribution from the layouts in IN's {@code layout.json} and the rules. */
  public static Reshard fromStoredLayouts() {
    return new Reshard(Optional.empty());
  }

  /**
   * Sets the input IN: a safetensors file, or a folder of files in the index form or the rank form.
   */
  public Reshard in(Path path) {
    request.in = Objects.requireNonNull(path, "path");
    return this;
  }

  /**
   * Sets the output OUT. If its name ends in {@code .safetensors}, it is a file of whole tensors.
   * Otherwise it is a folder of rank files.
   */
  public Reshard out(Path path) {
    request.out = Objects.requireNonNull(path, "path");
    return this;
  }

  /** Sets the target layout. The file of each rank has the rank's number. */
  public Reshard to(Layout layout) {
    request.to = Optional.of(Objects.requireNonNull(layout, "layout").qualified());
    return this;
  }

  /**
   * Sets the target layout. If {@code layout} names no ranks, they are numbered after the highest
   * rank of the source, and their files are numbered from 0.
   *
   * @throws InvalidArgumentException if the text is not a layout
   */
  public Reshard to(String layout) {
    Layout.parse(Objects.requireNonNull(layout, "layout"));
    request.to = Optional.of(layout);
    return this;
  }

  /** Sets the JSON file of rules for individual tensors, as docs/reference/rules.md describes. */
  public Reshard rules(Path file) {
    request.rules = Optional.of(Objects.requireNonNull(file, "file"));
    return this;
  }

  /**
   * Sets the dtype in which floating tensors cross ranks. By default, they cross in the dtype of
   * the source.
   */
  public Reshard wire(DType dtype) {
    request.wire = Optional.of(Casts.require(dtype));
    return this;
  }

  /**
   * Sets the dtype in which floating tensors are written. By default, each tensor keeps its dtype.
   */
  public Reshard dtype(DType dtype) {
    request.dtype = Optional.of(Casts.require(dtype));
    return this;
  }

  /**
   * Sets how bytes move. In mode {@code DIRECT}, the default, values that do not change are read
   * into memory and written from there. In mode {@code STAGED}, all values are first copied to
   * other memory in the wire dtype. The result is the same.
   */
  public Reshard mode(TransferMode mode) {
    if (Objects.requireNonNull(mode, "mode") == TransferMode.GATHER_BROADCAST) {
      throw new InvalidArgumentException("mode is " + mode + "; a reshard is direct or staged");
    }
    request.mode = mode;
    return this;
  }

  /**
   * Sets the number of bytes that a thread collects in memory before it writes them. The default is
   * 8 MiB. The result does not depend on this setting.
   */
  public Reshard bucketBytes(long bytes) {
    request.bucketBytes = OptionalLong.of(positive("bytes", bytes));
    return this;
  }

  /**
   * Writes whole tensors in the index form, with at most {@code bytes} tensor bytes in a file. A
   * larger tensor has its own file.
   */
  public Reshard maxShardBytes(long bytes) {
    request.maxShardBytes = OptionalLong.of(positive("bytes", bytes));
    return this;
  }

  private static long positive(String name, long value) {
    if (value < 1) {
      throw new InvalidArgumentException(name + " is " + value + "; it must be 1 or more");
    }
    return value;
  }

  /**
   * Allows the run to replace an existing OUT. The replacement is atomic, and deletes the old
   * content. The existing OUT must be an empty folder, or an output of Windlass that was not
   * changed.
   */
  public Reshard force() {
    request.force = true;
    return this;
  }

  /**
   * Compares source replicas with each other, and the result with that of a separate, slow
   * implementation.
   */
  public Reshard verify() {
    request.verify = true;
    return this;
  }

  /** Casts f8 tensors even if they have scales. */
  public Reshard ignoreScales() {
    request.ignoreScales = true;
    return this;
  }

  /** Sets the longest time in which no byte moves before the run fails. The default is 60 s. */
  public Reshard deadline(Duration deadline) {
    request.deadline = Duration.ofNanos(Deadline.nanos(deadline));
    return this;
  }

  /**
   * Sets the target, which is the hardware on which the kernels run, such as this machine's
   * processor. {@link #run} throws UnsupportedException if the target is not available here.
   */
  public Reshard target(Target target) {
    this.target = Optional.of(Objects.requireNonNull(target, "target"));
    return this;
  }

  /** Sets the listener for progress. An exception from it ends the run. */
  public Reshard progress(ProgressListener listener) {
    progress = Objects.requireNonNull(listener, "listener");
    return this;
  }

  /** Sets the listener for warnings about requests that are valid but seldom intended. */
  public Reshard warnings(Consumer<String> listener) {
    warnings = Objects.requireNonNull(listener, "listener");
    return this;
  }

  /**
   * Checks the request without a run. Reads only IN's headers. If the check fails, this method
   * reports the warnings about the headers, and then throws. Otherwise only a run reports these
   * warnings.
   *
   * @throws InvalidArgumentException if IN is malformed, or does not fit layouts and rules
   * @throws org.windlass.error.UnsupportedException if the target is not available, or a dtype
   *     cannot move as requested
   * @throws org.windlass.error.ResourceException if a file cannot be read
   */
  public void check() {
    target.ifPresent(Target::require);
    List<String> heard = new ArrayList<>();
    try {
      new ReshardRun(checked(), progress, heard::add, Cancellation.ofNothing()).close();
    } catch (RuntimeException refused) {
      heard.forEach(warnings);
      throw refused;
    }
  }

  /**
   * Redistributes the checkpoint, on the caller's thread and several others. If the run fails, the
   * disk is left as it was before. An interrupt of the calling thread ends the run, and the thread
   * stays interrupted.
   *
   * @throws InvalidArgumentException if IN is malformed, or does not fit layouts and rules
   * @throws org.windlass.error.AbortedException if the run was cancelled or interrupted
   * @throws org.windlass.error.DeadlineExceededException if no byte moved for the length of the
   *     deadline
   * @throws org.windlass.error.VerificationFailedException if {@link #verify} finds a difference;
   *     the message names the tensor, the index and both ranks
   * @throws org.windlass.error.UnsupportedException if the target is not available, or a dtype
   *     cannot move as requested
   * @throws org.windlass.error.ResourceException if the disk is full, or a file cannot be read or
   *     written
   */
  public ReshardResult run() {
    return run(
        run -> {
          CommunicatorOptions options = CommunicatorOptions.defaults().withDeadline(Team.NO_LIMIT);
          try (LocalGroup group = LocalGroup.of(run.threads(), options)) {
            return run.run(group);
          }
        });
  }

  /**
   * Redistributes the checkpoint with the ranks of a communicator, in one or several processes.
   * This is a collective operation. Each process calls it with its own ranks and with the same
   * settings, IN and OUT.
   *
   * <p>The process of rank 0 creates OUT and verifies it. The other processes read and write too.
   * The method returns once OUT has its name.
   *
   * <p>If one process fails, all processes throw, and the communicator is dead. If the process of
   * rank 0 is killed, a hidden work folder remains, which the next run in OUT's folder removes.
   *
   * @param group the ranks of this process. No other operation may run on them meanwhile
   * @throws InvalidArgumentException as {@link #run()} does
   * @throws org.windlass.error.MismatchException if processes differ in settings or in IN
   * @throws org.windlass.error.AbortedException if any process was cancelled, interrupted or failed
   * @throws org.windlass.error.PeerLostException if a process has ended
   * @throws org.windlass.error.DeadlineExceededException if no byte moved for the length of the
   *     deadline, or a process did not join within the deadline or 60 s, whichever is longer
   */
  public ReshardResult run(LocalGroup group) {
    Communicator first = Objects.requireNonNull(group, "group").communicators().get(0);
    try {
      return run(run -> run.run(group));
    } catch (Throwable failure) {
      first.abort("reshard: rank " + first.rank() + " ended with " + failure);
      throw failure;
    }
  }

  private ReshardResult run(Function<ReshardRun, ReshardResult> body) {
    checked();
    if (!cancellation.begin()) {
      throw new InvalidArgumentException("run: this reshard has already run; create another one");
    }
    try {
      cancellation.check();
      target.ifPresent(Target::require);
      try (ReshardRun run = new ReshardRun(request, progress, warnings, cancellation)) {
        return body.apply(run);
      }
    } catch (WindlassException failure) {
      throw cancellation.cause(failure);
    }
  }

  private ReshardRequest checked() {
    Path out = request.out();
    if (request.maxShardBytes.isPresent() && out.toString().endsWith(".safetensors")) {
      throw new InvalidArgumentException(
          out + ": maxShardBytes() writes a folder, but this is the name of a file; name a"
              + " folder, or leave maxShardBytes() out");
    }
    request.in();
    return request;
  }

  /**
   * Ends the run with {@link org.windlass.error.AbortedException}, even if the run has not begun
   * yet. When this returns, no file of the run is on the disk. If there are several processes, this
   * holds only in the process of rank 0. If the run has already given OUT its name, it is complete,
   * and OUT stays. Idempotent. Any thread may call it.
   *
   * @return false if this run has given OUT its name
   */
  public boolean cancel() {
    return cancellation.cancel();
  }
}
