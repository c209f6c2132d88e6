// SPDX-License-Identifier: Apache-2.0
package org.windlass.reshard.output;

import java.util.concurrent.CompletableFuture;
import org.windlass.checkpoint.CheckpointWriter;
import org.windlass.internal.Daemon;

/**
 * Syncs written data to the disk while more is being written, so that little is left to sync at the
 * end.
 */
public final class EarlySync implements AutoCloseable {
  // Number of written bytes after which all files are synced once. With a smaller number, many rows
  // of transposed tensors would reach the disk in pieces.
  private static final long ROUND_BYTES = 256L << 20;

  private final CheckpointWriter writer;
  private CompletableFuture<Void> running = CompletableFuture.completedFuture(null);
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
    if (waiting >= ROUND_BYTES && running.isDone()) {
      close();
      waiting = 0;
      running = Daemon.run("windlass-sync", writer::sync);
    }
  }

  /**
   * Waits for the sync that was started. Throws the sync's failure only the first time, because an
   * exception cannot suppress itself.
   */
  @Override
  public synchronized void close() {
    CompletableFuture<Void> over = running;
    running = CompletableFuture.completedFuture(null);
    Daemon.join(over);
  }
}
