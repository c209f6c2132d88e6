// SPDX-License-Identifier: Apache-2.0
package org.windlass.reshard.output;

import java.util.concurrent.ExecutionException;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import org.windlass.checkpoint.CheckpointWriter;
import org.windlass.error.WindlassException;

/**
 * The sync to the disk of what is written while more is being written, so that little is left to do
 * at the end.
 */
public final class EarlySync implements AutoCloseable {
  // So much is worth a round over all files.
  private static final long ROUND_BYTES = 64L << 20;

  private final CheckpointWriter writer;
  private final ExecutorService thread =
      Executors.newSingleThreadExecutor(
          body -> {
            Thread made = new Thread(body, "windlass-sync");
            made.setDaemon(true);
            return made;
          });
  private Future<?> running;
  private long waiting;

  public EarlySync(CheckpointWriter writer) {
    this.writer = writer;
  }

  /** Hears of bytes that were written. */
  public void wrote(long bytes) {
    waiting += bytes;
    if (waiting >= ROUND_BYTES && (running == null || running.isDone())) {
      settle();
      waiting = 0;
      running = thread.submit(writer::sync);
    }
  }

  /**
   * Waits for what was started, and tells its failure once: an exception cannot suppress itself.
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

  /** Returns when what was started is over. */
  @Override
  public void close() {
    settle();
    thread.shutdown();
  }
}
