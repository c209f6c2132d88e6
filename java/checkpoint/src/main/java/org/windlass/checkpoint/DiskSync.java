// SPDX-License-Identifier: Apache-2.0
package org.windlass.checkpoint;

import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionException;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import org.windlass.error.WindlassException;

/**
 * Syncs many files to the disk at once. A file system commits concurrent syncs together, while a
 * thousand syncs one after another take seconds.
 */
final class DiskSync {
  private static final int THREADS = 16;

  private DiskSync() {}

  /** Syncs the files. An interrupt does not end the wait, but stays set. */
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
      CompletableFuture.allOf(
              files.stream()
                  .map(file -> CompletableFuture.runAsync(file::sync, threads))
                  .toArray(CompletableFuture[]::new))
          .join();
    } catch (CompletionException failed) {
      throw failed.getCause() instanceof WindlassException known ? known : failed;
    } finally {
      threads.shutdownNow();
    }
  }
}
