// SPDX-License-Identifier: Apache-2.0
package org.windlass.cli;

import java.util.ArrayList;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Set;
import org.windlass.WindlassException;

/**
 * What a signal that ends the process must take away: closed in a shutdown hook unless the command
 * is over by then.
 */
final class Unfinished implements AutoCloseable {
  private static final int INTERRUPTED = 130;

  /** Those of commands that run; guards {@code ending} and what each of them holds. */
  private static final Set<Unfinished> OPEN = new LinkedHashSet<>();

  private static final Thread HOOK = new Thread(Unfinished::end, "windlass-cleanup");

  private static boolean ending;

  private final List<AutoCloseable> pending = new ArrayList<>();

  Unfinished() {
    synchronized (OPEN) {
      OPEN.add(this);
    }
  }

  /**
   * From now until {@link #exit}, a signal that ends the process takes away what is unfinished, and
   * the status is 130.
   */
  static void removeOnSignal() {
    try {
      Runtime.getRuntime().addShutdownHook(HOOK);
    } catch (IllegalStateException endingAlready) {
      // Nothing has begun.
    }
  }

  /** Ends the process with this status, unless a signal is about to end it. */
  static void exit(int status) {
    try {
      Runtime.getRuntime().removeShutdownHook(HOOK);
    } catch (IllegalStateException endingAlready) {
      // The hook gives the status; what follows waits for it.
    }
    System.exit(status);
  }

  /** Whether a signal is ending the process: what fails now fails because of that. */
  static boolean isProcessEnding() {
    Thread probe = new Thread(() -> {});
    try {
      Runtime.getRuntime().addShutdownHook(probe);
      Runtime.getRuntime().removeShutdownHook(probe);
      return false;
    } catch (IllegalStateException shuttingDown) {
      return true;
    }
  }

  /** Adds something whose close removes it, and does nothing once it is finished. */
  void add(AutoCloseable writer) {
    synchronized (OPEN) {
      if (!ending) {
        pending.add(writer);
        return;
      }
    }
    remove(writer);
  }

  private static void end() {
    List<AutoCloseable> all = new ArrayList<>();
    synchronized (OPEN) {
      ending = true;
      OPEN.forEach(each -> all.addAll(each.pending));
    }
    try {
      all.forEach(Unfinished::remove);
    } finally {
      Runtime.getRuntime().halt(INTERRUPTED);
    }
  }

  private static void remove(AutoCloseable writer) {
    try {
      writer.close();
    } catch (WindlassException left) {
      System.err.println("windlass: " + left.code() + ": " + left.getMessage());
    } catch (Exception left) {
      System.err.println("windlass: " + left);
    }
  }

  @Override
  public void close() {
    synchronized (OPEN) {
      OPEN.remove(this);
    }
  }
}
