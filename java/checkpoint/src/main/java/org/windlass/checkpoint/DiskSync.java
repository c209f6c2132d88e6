// SPDX-License-Identifier: Apache-2.0
package org.windlass.checkpoint;

import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import org.windlass.error.WindlassException;

/**
 * Syncs many files to the disk at once. A file system commits concurrent syncs together, while a
 * thousand syncs one after another take seconds.
 */
final class DiskSync {
  private static final int THREADS = 16;

  private DiskSync() {}

  static void all(List<SafetensorsWriter> files) {
    if (files.size() < 2) {
      files.forEach(SafetensorsWriter::sync);
      return;
    }
    ExecutorService threads =
        Executors.newFixedThreadPool(
            Math.min(files.size(), THREADS),
            body -> {
              Thread made = new Thread(body, "windlass-sync");
              made.setDaemon(true);
              return made;
            });
    try {
      List<Future<?>> syncs = new ArrayList<>();
      files.forEach(file -> syncs.add(threads.submit(file::sync)));
      for (Future<?> sync : syncs) {
        settle(sync);
      }
    } finally {
      threads.shutdownNow();
    }
  }

  /** Waits until a sync has ended. An interrupt does not end the wait, but stays set. */
  private static void settle(Future<?> sync) {
    boolean interrupted = false;
    try {
      while (true) {
        try {
          sync.get();
          return;
        } catch (InterruptedException again) {
          interrupted = true;
        }
      }
    } catch (ExecutionException failed) {
      if (failed.getCause() instanceof WindlassException known) {
        throw known;
      }
      throw new IllegalStateException(failed.getCause());
    } finally {
      if (interrupted) {
        Thread.currentThread().interrupt();
      }
    }
  }
}
