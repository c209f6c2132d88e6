// SPDX-License-Identifier: Apache-2.0
package org.windlass.cli;

import java.util.ArrayList;
import java.util.List;
import org.windlass.WindlassException;

/**
 * What a signal that ends the process must take away: closed in a shutdown hook unless the command
 * is over by then.
 */
final class Unfinished implements AutoCloseable {
  private final List<AutoCloseable> pending = new ArrayList<>();
  private final Thread hook = new Thread(this::removeAll, "windlass-cleanup");
  private boolean ending;

  Unfinished() {
    Runtime.getRuntime().addShutdownHook(hook);
  }

  /** Adds something whose close removes it, and does nothing once it is finished. */
  void add(AutoCloseable writer) {
    synchronized (this) {
      if (!ending) {
        pending.add(writer);
        return;
      }
    }
    remove(writer);
  }

  private void removeAll() {
    List<AutoCloseable> writers;
    synchronized (this) {
      ending = true;
      writers = List.copyOf(pending);
    }
    writers.forEach(Unfinished::remove);
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
    try {
      Runtime.getRuntime().removeShutdownHook(hook);
    } catch (IllegalStateException shuttingDown) {
      // The hook runs already.
    }
  }
}
