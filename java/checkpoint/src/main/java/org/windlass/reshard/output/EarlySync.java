// SPDX-License-Identifier: Apache-2.0
package org.windlass.reshard.output;

import java.util.concurrent.ExecutionException;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import org.jspecify.annotations.Nullable;
import org.windlass.checkpoint.CheckpointWriter;
import org.windlass.error.WindlassException;

/**
 * Syncs written data to the disk while more is being written, so that little is left at the end.
 */
public final class EarlySync implements AutoCloseable {
  // One round over all files pays off for this number of bytes. In shorter rounds, many rows of
  // transposed tensors would reach the disk in pieces.
  private static final long ROUND_BYTES = 256L << 20;

  private final CheckpointWriter writer;
  private final ExecutorService thread =
      Executors.newSingleThreadExecutor(
          body -> {
            Thread made = new Thread(body, "windlass-sync");
            made.setDaemon(true);
            return made;
          });
  private @Nullable Future<?> running;
  private long waiting;

  /** Creates the sync for the files of {@code writer}. */
  public EarlySync(CheckpointWriter writer) {
    this.writer = writer;
  }

  /**
   * Receives the number of bytes that were written. Starts a background sync from time to time,
   * unless one is still running. Thread-safe.
   */
  public synchronized void wrote(long bytes) {
    waiting += bytes;
    if (waiting >= ROUND_BYTES && (running == null || running.isDone())) {
      settle();
      waiting = 0;
      running = thread.submit(writer::sync);
    }
  }

  /**
   * Waits for the sync that was started. Throws its failure the first time only, because an
   * exception cannot suppress itself.
   */
  private void settle() {
    Future<?> over = running;
    running = null;
    try {
      if (over != null) {
        over.get();
      }
    } catch (ExecutionException failed) {
      if (failed.getCause() instanceof WindlassException known) {
        throw known;
      }
      throw new IllegalStateException(failed.getCause());
    } catch (InterruptedException interrupted) {
      Thread.currentThread().interrupt();
    }
  }

  /** Waits for the sync that was started. */
  @Override
  public void close() {
    settle();
    thread.shutdown();
  }
}
