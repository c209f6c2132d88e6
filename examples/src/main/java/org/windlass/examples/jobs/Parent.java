// SPDX-License-Identifier: Apache-2.0
package org.windlass.examples.jobs;

import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.io.UncheckedIOException;
import java.nio.charset.StandardCharsets;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.LinkedBlockingQueue;

/** Whoever started this process, a {@link JobProcess} of theirs, and tells it what to do. */
final class Parent {
  private Parent() {}

  /** What it gives this process to read, line by line. The process ends when it does. */
  static BlockingQueue<String> lines() {
    BlockingQueue<String> told = new LinkedBlockingQueue<>();
    Thread parent = new Thread(() -> readUntilParentEnds(told), "parent");
    parent.setDaemon(true);
    parent.start();
    return told;
  }

  private static void readUntilParentEnds(BlockingQueue<String> told) {
    try (BufferedReader lines =
        new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8))) {
      lines.lines().forEach(told::add);
    } catch (IOException | UncheckedIOException e) {
      // As at the end.
    }
    Runtime.getRuntime().halt(1);
  }
}
