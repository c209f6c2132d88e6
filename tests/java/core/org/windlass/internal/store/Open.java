// SPDX-License-Identifier: Apache-2.0
package org.windlass.internal.store;

import static org.assertj.core.api.Assertions.assertThat;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.stream.Stream;

/** What stores of this process have open: their threads, and descriptors that are no file's. */
record Open(long threads, long descriptors) {
  static Open now() throws IOException {
    long threads =
        Thread.getAllStackTraces().keySet().stream()
            .filter(thread -> thread.getName().startsWith("windlass-store"))
            .count();
    try (Stream<Path> all = Files.list(Path.of("/proc/self/fd"))) {
      return new Open(threads, all.filter(Open::isNoFile).count());
    }
  }

  private static boolean isNoFile(Path descriptor) {
    try {
      String target = Files.readSymbolicLink(descriptor).toString();
      return target.startsWith("socket:") || target.startsWith("anon_inode:");
    } catch (IOException e) {
      return false; // the one that listed them
    }
  }

  /** Closing waits, so what it left is there to see. */
  void requireNoMoreNow() throws IOException {
    Open later = now();
    assertThat(later.threads).as("threads").isLessThanOrEqualTo(threads);
    assertThat(later.descriptors).as("descriptors").isLessThanOrEqualTo(descriptors);
  }
}
