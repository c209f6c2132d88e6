// SPDX-License-Identifier: Apache-2.0
package org.windlass.examples.jobs;

import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.io.UncheckedIOException;
import java.nio.charset.StandardCharsets;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.LinkedBlockingQueue;

/**
 * The parent process, which started this process as a {@link JobProcess} and sends it commands.
 */
final class Parent {
  private Parent() {}

  /** Returns the lines that the parent sends. This process ends when the parent ends. */
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
      // Treat a failed read like the end of input.
    }
    Runtime.getRuntime().halt(1);
  }
}
