// SPDX-License-Identifier: Apache-2.0
package org.windlass.reshard;

import java.nio.file.Path;
import java.time.Duration;
import java.util.Objects;
import java.util.Optional;
import java.util.OptionalLong;
import java.util.function.Consumer;
import org.windlass.DType;
import org.windlass.InvalidArgumentException;
import org.windlass.Target;
import org.windlass.UnsupportedException;
import org.windlass.WindlassException;
import org.windlass.internal.Deadlines;
import org.windlass.layout.Layout;
import org.windlass.plan.TransferMode;

/**
 * A redistribution of a checkpoint on disk, from one layout to another:
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
 * <p>Settings are made by one thread, before {@link #run}, which is called once. What it writes
 * appears complete or not at all.
 */
public final class Reshard {
  private static final Duration DEADLINE = Duration.ofSeconds(60);

  private final Optional<Layout> from;
  private final Cancellation cancellation = new Cancellation();
  private Path in;
  private Path out;
  private Optional<String> to = Optional.empty();
  private Optional<Path> rules = Optional.empty();
  private Optional<DType> wire = Optional.empty();
  private Optional<DType> dtype = Optional.empty();
  private TransferMode mode = TransferMode.DIRECT;
  private OptionalLong bucketBytes = OptionalLong.empty();
  private OptionalLong maxShardBytes = OptionalLong.empty();
  private boolean force;
  private boolean verify;
  private boolean ignoreScales;
  private Duration deadline = DEADLINE;
  private Optional<Target> target = Optional.empty();
  private ProgressListener progress = (moved, total) -> {};
  private Consumer<String> warnings = text -> {};

  private Reshard(Optional<Layout> from) {
    this.from = from;
  }

  /**
   * From tensors of this layout, unless a rule gives a tensor another; a shard of a dimension that a
   * tensor lacks is a replica for it.
   */
  public static Reshard from(Layout layout) {
    return new Reshard(Optional.of(Objects.requireNonNull(layout, "layout")));
  }

  /** From tensors of the layouts that IN's {@code layout.json} and the rules give. */
  public static Reshard fromStoredLayouts() {
    return new Reshard(Optional.empty());
  }

  /** What is read: a safetensors file, or a folder in index or rank form. */
  public Reshard in(Path path) {
    in = Objects.requireNonNull(path, "path");
    return this;
  }

  /** What is written: whole tensors if it ends in {@code .safetensors}, else a folder of rank files. */
  public Reshard out(Path path) {
    out = Objects.requireNonNull(path, "path");
    return this;
  }

  /** To tensors of this layout, on its own ranks. */
  public Reshard to(Layout layout) {
    to = Optional.of(Objects.requireNonNull(layout, "layout").qualified());
    return this;
  }

  /**
   * To tensors of this layout, whose ranks follow the highest of the source where {@code layout}
   * names none.
   *
   * @throws InvalidArgumentException if it is no layout
   */
  public Reshard to(String layout) {
    Layout.parse(Objects.requireNonNull(layout, "layout"));
    to = Optional.of(layout);
    return this;
  }

  /** What becomes of which tensors: a JSON file, as docs/reshard.md describes. */
  public Reshard rules(Path file) {
    rules = Optional.of(Objects.requireNonNull(file, "file"));
    return this;
  }

  /** The dtype in which floating tensors cross ranks; else they cross as they are. */
  public Reshard wire(DType dtype) {
    wire = Optional.of(Casts.require(dtype));
    return this;
  }

  /** The dtype in which floating tensors are written; else they keep theirs. */
  public Reshard dtype(DType dtype) {
    this.dtype = Optional.of(Casts.require(dtype));
    return this;
  }

  /** How bytes move: {@code DIRECT}, as they do unless told, or {@code STAGED}. */
  public Reshard mode(TransferMode mode) {
    if (Objects.requireNonNull(mode, "mode") == TransferMode.GATHER_BROADCAST) {
      throw new InvalidArgumentException("mode is " + mode + "; a reshard is direct or staged");
    }
    this.mode = mode;
    return this;
  }

  /** The flush threshold of buckets in mode {@code STAGED}; the result is the same. */
  public Reshard bucketBytes(long bytes) {
    bucketBytes = OptionalLong.of(positive("bytes", bytes));
    return this;
  }

  /** Writes whole tensors in the index form, with at most so many tensor bytes in a file; a larger tensor has one. */
  public Reshard maxShardBytes(long bytes) {
    maxShardBytes = OptionalLong.of(positive("bytes", bytes));
    return this;
  }

  private static long positive(String name, long value) {
    if (value < 1) {
      throw new InvalidArgumentException(name + " is " + value + "; it must be 1 or more");
    }
    return value;
  }

  /**
   * Replaces an existing OUT at once and destroys what it held: only an empty folder, or what
   * Windlass wrote and nobody changed.
   */
  public Reshard force() {
    force = true;
    return this;
  }

  /** Compares source replicas, and the result with a separate slow path. */
  public Reshard verify() {
    verify = true;
    return this;
  }

  /** Casts f8 tensors although scales stand beside them. */
  public Reshard ignoreScales() {
    ignoreScales = true;
    return this;
  }

  /** How long nothing may move, 60 s unless told. */
  public Reshard deadline(Duration deadline) {
    this.deadline = Duration.ofNanos(Deadlines.nanos(deadline, WindlassException::of));
    return this;
  }

  /** What runs the kernels; {@link #run} refuses one that is not available here. */
  public Reshard target(Target target) {
    this.target = Optional.of(Objects.requireNonNull(target, "target"));
    return this;
  }

  /** Who hears how far it is. What it throws ends the run. */
  public Reshard progress(ProgressListener listener) {
    progress = Objects.requireNonNull(listener, "listener");
    return this;
  }

  /** Who hears of what is odd about the request, and no reason to refuse it. */
  public Reshard warnings(Consumer<String> listener) {
    warnings = Objects.requireNonNull(listener, "listener");
    return this;
  }

  /**
   * Redistributes, on some threads beside the caller. Whatever it throws, what was there before is
   * all that is there; an interrupt of the calling thread ends it, and stays set.
   *
   * @throws InvalidArgumentException if IN is malformed, or does not fit layouts and rules
   * @throws org.windlass.AbortedException if it was cancelled or interrupted
   * @throws org.windlass.DeadlineExceededException if nothing moved for the length of the deadline
   * @throws org.windlass.VerificationFailedException naming tensor, index and both ranks
   * @throws org.windlass.UnsupportedException if the target is not available, or a dtype cannot move
   *     as asked
   * @throws org.windlass.ResourceException if the disk is full, or a file cannot be read or written
   */
  public ReshardResult run() {
    ReshardRequest request =
        new ReshardRequest(
            given("in()", in),
            given("out()", out),
            from,
            to,
            rules,
            wire,
            dtype,
            mode,
            bucketBytes,
            maxShardBytes,
            force,
            verify,
            ignoreScales,
            deadline);
    if (!cancellation.begin()) {
      throw new InvalidArgumentException("run: this reshard has run; make another one");
    }
    try {
      cancellation.check();
      target.ifPresent(Target::require);
      return new ReshardRun(request, progress, warnings, cancellation).run();
    } catch (WindlassException failure) {
      throw cancellation.cause(failure);
    }
  }

  private static Path given(String setting, Path path) {
    if (path == null) {
      throw new InvalidArgumentException(setting + " is missing; a reshard takes a path for it");
    }
    return path;
  }

  /**
   * Ends the run with {@link org.windlass.AbortedException}, also one that is still to come. Nothing
   * of it is on the disk when this returns; a run that has given OUT its name is complete, and stays.
   * Idempotent; any thread.
   */
  public void cancel() {
    cancellation.cancel();
  }
}
