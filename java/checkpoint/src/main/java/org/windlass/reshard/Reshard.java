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
import org.windlass.error.UnsupportedException;
import org.windlass.error.WindlassException;
import org.windlass.internal.Deadline;
import org.windlass.kernel.Target;
import org.windlass.layout.Layout;
import org.windlass.plan.TransferMode;
import org.windlass.reshard.move.Team;
import org.windlass.reshard.request.ReshardRequest;
import org.windlass.reshard.tensor.Casts;

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
   * From tensors of this layout, unless a rule gives a tensor another; a shard of a dimension that
   * a tensor lacks is a replica for it.
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

  /**
   * What is written: whole tensors if it ends in {@code .safetensors}, else a folder of rank files.
   */
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
   * To tensors of this layout. Where {@code layout} names no ranks they follow the highest of the
   * source, and their files are numbered from 0.
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

  /**
   * Writes whole tensors in the index form, with at most so many tensor bytes in a file; a larger
   * tensor has one.
   */
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
    this.deadline = Duration.ofNanos(Deadline.nanos(deadline));
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
   * The fewest ranks that {@link #run(LocalGroup)} takes: one, or one for each term of the largest
   * reduction. Looks at IN's headers. What {@link #warnings} hears of them it hears from a run, or
   * from here where this refuses one.
   *
   * @throws InvalidArgumentException if IN is malformed, or does not fit layouts and rules
   * @throws org.windlass.error.UnsupportedException if the target is not available, or a dtype
   *     cannot move as asked
   * @throws org.windlass.error.ResourceException if a file cannot be read
   */
  public int leastRanks() {
    target.ifPresent(Target::require);
    List<String> heard = new ArrayList<>();
    try (ReshardRun run =
        new ReshardRun(request(), progress, heard::add, Cancellation.ofNothing())) {
      return run.leastRanks();
    } catch (RuntimeException refused) {
      heard.forEach(warnings);
      throw refused;
    }
  }

  /**
   * Redistributes, on some threads beside the caller. Whatever it throws, what was there before is
   * all that is there; an interrupt of the calling thread ends it, and stays set.
   *
   * @throws InvalidArgumentException if IN is malformed, or does not fit layouts and rules
   * @throws org.windlass.error.AbortedException if it was cancelled or interrupted
   * @throws org.windlass.error.DeadlineExceededException if nothing moved for the length of the
   *     deadline
   * @throws org.windlass.error.VerificationFailedException naming tensor, index and both ranks
   * @throws org.windlass.error.UnsupportedException if the target is not available, or a dtype
   *     cannot move as asked
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
   * Collective: the same with the ranks of a communicator, threads and processes; each process
   * calls it with its own, with the same settings, IN and OUT. The process of rank 0 makes OUT and
   * verifies it; the others read and write beside it. It returns once OUT stands. Where one of them
   * fails, all throw, and the communicator is dead; where that of rank 0 is killed, a hidden work
   * folder is left, which the next run in OUT's folder removes.
   *
   * @param group the ranks of this process, on which nothing else runs meanwhile; {@link
   *     #leastRanks} or more with those of the others
   * @throws InvalidArgumentException as {@link #run()} does, or if there are too few ranks
   * @throws org.windlass.error.MismatchException if processes differ in settings, or in what they
   *     find in IN
   * @throws org.windlass.error.AbortedException if any process was cancelled, interrupted or failed
   * @throws org.windlass.error.PeerLostException if a process has ended
   * @throws org.windlass.error.DeadlineExceededException if nothing moved for the length of the
   *     deadline, or a process has not come in it, or in 60 s where that is longer
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
    ReshardRequest request = request();
    if (!cancellation.begin()) {
      throw new InvalidArgumentException("run: this reshard has run; make another one");
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

  private ReshardRequest request() {
    if (maxShardBytes.isPresent() && out != null && out.toString().endsWith(".safetensors")) {
      throw new InvalidArgumentException(
          out + ": maxShardBytes() makes a folder, and this is a file's name; name a folder, or"
              + " leave maxShardBytes() out");
    }
    return new ReshardRequest(
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
  }

  private static Path given(String setting, Path path) {
    if (path == null) {
      throw new InvalidArgumentException(setting + " is missing; a reshard takes a path for it");
    }
    return path;
  }

  /**
   * Ends the run with {@link org.windlass.error.AbortedException}, also one that is still to come.
   * Nothing of it is on the disk when this returns, in the process of rank 0 where there are
   * several; a run that has given OUT its name is complete, and stays. Idempotent; any thread.
   *
   * @return false if this run has given OUT its name
   */
  public boolean cancel() {
    return cancellation.cancel();
  }
}
