// SPDX-License-Identifier: Apache-2.0
package org.windlass.reshard;

import java.util.Objects;
import java.util.Optional;
import java.util.function.Supplier;
import org.jspecify.annotations.Nullable;
import org.windlass.Communicator;
import org.windlass.LocalGroup;
import org.windlass.checkpoint.CheckpointWriter;
import org.windlass.error.AbortedException;
import org.windlass.error.ClosedException;
import org.windlass.error.WindlassException;

/**
 * Ends a run early, after {@link #cancel} or an interrupt of the thread that runs it. It holds the
 * run's group, which it aborts, and the run's writer, which it closes.
 */
final class Cancellation {
  private static final String CANCELLED = "reshard: was cancelled";

  private volatile boolean cancelled;
  private volatile @Nullable Thread runner;
  private volatile @Nullable LocalGroup group;
  private @Nullable CheckpointWriter writer;

  /** Returns a cancellation that only an interrupt of the current thread triggers. */
  static Cancellation ofNothing() {
    Cancellation cancellation = new Cancellation();
    cancellation.begin();
    return cancellation;
  }

  /**
   * Claims the run for the current thread.
   *
   * @return false if a thread has claimed the run before
   */
  synchronized boolean begin() {
    if (runner != null) {
      return false;
    }
    runner = Thread.currentThread();
    return true;
  }

  /**
   * Throws if the run must not continue. Any thread may call it.
   *
   * @throws AbortedException if the run was cancelled or interrupted
   * @throws WindlassException the failure of the group's ranks, if they have failed
   */
  void check() {
    String reason = reason();
    if (reason != null) {
      throw new AbortedException(reason);
    }
    Optional.ofNullable(group)
        .flatMap(moving -> first(moving).failure())
        .ifPresent(
            failure -> {
              throw failure;
            });
  }

  private static Communicator first(LocalGroup moving) {
    return moving.communicators().get(0);
  }

  /** Returns the reason why the run must end early. Null if it may continue. */
  private @Nullable String reason() {
    Thread thread = Objects.requireNonNull(runner);
    String interrupted = "reshard: thread \"" + thread.getName() + "\" was interrupted";
    return cancelled ? CANCELLED : thread.isInterrupted() ? interrupted : null;
  }

  /** Creates the writer, which is closed if the run ends early. Throws as {@link #check} does. */
  synchronized CheckpointWriter writing(Supplier<CheckpointWriter> begin) {
    check();
    CheckpointWriter begun = begin.get();
    writer = begun;
    return begun;
  }

  /**
   * Registers a group whose operations are aborted if the run ends early. Throws as {@link #check}
   * does.
   */
  synchronized void moving(LocalGroup moving) {
    group = moving;
    check();
  }

  /**
   * Ends the run. When this returns, none of the run's files are on the disk, unless the run was
   * already complete. Idempotent. Any thread may call it.
   *
   * @return false if the checkpoint was committed already
   */
  synchronized boolean cancel() {
    cancelled = true;
    LocalGroup moving = group;
    if (moving != null) {
      first(moving).abort(CANCELLED);
    }
    if (writer == null) {
      return true;
    }
    writer.close();
    return !writer.isCommitted();
  }

  /**
   * Returns the exception that a failed run throws: the reason for the early end if there was one,
   * otherwise {@code failure}. The files of a cancelled run are closed and removed, so errors about
   * these files are ignored.
   */
  WindlassException cause(WindlassException failure) {
    String reason = reason();
    boolean isConsequence =
        cancelled || failure instanceof AbortedException || failure instanceof ClosedException;
    return reason != null && isConsequence ? new AbortedException(reason, failure) : failure;
  }
}
