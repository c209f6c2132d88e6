// SPDX-License-Identifier: Apache-2.0
package org.windlass.reshard;

import java.util.function.Supplier;
import org.windlass.Communicator;
import org.windlass.LocalGroup;
import org.windlass.checkpoint.CheckpointWriter;
import org.windlass.error.AbortedException;
import org.windlass.error.ClosedException;
import org.windlass.error.WindlassException;

/**
 * The early end of a run, by {@link #cancel} or by an interrupt of the thread that runs it. It knows
 * what of the run blocks and what lies on the disk.
 */
final class Cancellation {
  private static final String CANCELLED = "reshard: was cancelled";

  private volatile boolean cancelled;
  private volatile Thread runner;
  private volatile LocalGroup group;
  private CheckpointWriter writer;

  /** Of what the current thread does and nobody cancels. */
  static Cancellation ofNothing() {
    Cancellation cancellation = new Cancellation();
    cancellation.begin();
    return cancellation;
  }

  /**
   * Claims the run for the current thread.
   *
   * @return whether no thread had it before
   */
  synchronized boolean begin() {
    if (runner != null) {
      return false;
    }
    runner = Thread.currentThread();
    return true;
  }

  /**
   * Returns while the run goes on; any thread.
   *
   * @throws AbortedException once it shall end
   * @throws WindlassException what has ended the ranks that move
   */
  void check() {
    if (cancelled) {
      throw new AbortedException(CANCELLED);
    }
    if (runner.isInterrupted()) {
      throw new AbortedException(interrupted());
    }
    if (group != null) {
      first()
          .failure()
          .ifPresent(
              failure -> {
                throw failure;
              });
    }
  }

  private Communicator first() {
    return group.communicators().get(0);
  }

  private String interrupted() {
    return "reshard: thread \"" + runner.getName() + "\" was interrupted";
  }

  /** Begins to write, or refuses as {@link #check} does. */
  synchronized CheckpointWriter writing(Supplier<CheckpointWriter> begin) {
    check();
    writer = begin.get();
    return writer;
  }

  /** Aborts this group's operations when the run shall end, or refuses as {@link #check} does. */
  synchronized void moving(LocalGroup moving) {
    group = moving;
    check();
  }

  /**
   * Ends the run. Nothing of it is on the disk when this returns, unless it was complete before.
   * Idempotent; any thread.
   *
   * @return false if the checkpoint has its name already
   */
  synchronized boolean cancel() {
    cancelled = true;
    if (group != null) {
      first().abort(CANCELLED);
    }
    if (writer == null) {
      return true;
    }
    writer.close();
    return !writer.isCommitted();
  }

  /**
   * What a run that failed throws: where it was ended, that, whatever failed because of it. A run
   * that was cancelled lost the files that it was at, so whatever it says of them is no news.
   */
  WindlassException cause(WindlassException failure) {
    if (cancelled) {
      return new AbortedException(CANCELLED, failure);
    }
    boolean consequence = failure instanceof AbortedException || failure instanceof ClosedException;
    if (runner.isInterrupted() && consequence) {
      return new AbortedException(interrupted(), failure);
    }
    return failure;
  }
}
