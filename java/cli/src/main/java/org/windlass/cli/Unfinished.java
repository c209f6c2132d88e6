// SPDX-License-Identifier: Apache-2.0
package org.windlass.cli;

import java.nio.file.Path;
import java.util.ArrayList;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Set;
import java.util.function.BooleanSupplier;
import org.jspecify.annotations.Nullable;
import org.windlass.cli.out.WholeFile;
import org.windlass.error.WindlassException;

/**
 * Outputs and processes that a command has not finished yet. If a signal ends the process before
 * the command is over, {@link ProcessEnd} removes them.
 */
final class Unfinished implements AutoCloseable {
  /** Objects of running commands. It is the lock for {@code ending} and for all objects in it. */
  private static final Set<Unfinished> OPEN = new LinkedHashSet<>();

  private static boolean ending;

  private static boolean isOver;

  private static boolean hasRemovedOutput;

  /** Outputs that {@link #removeAll} found complete, and did not remove. */
  private static final List<Path> COMPLETE = new ArrayList<>();

  private final List<AutoCloseable> pending = new ArrayList<>();

  Unfinished() {
    synchronized (OPEN) {
      OPEN.add(this);
    }
  }

  /**
   * Adds an object that is closed if a signal ends the process. Its {@code close} removes an
   * unfinished output, and does nothing once the output is finished. Ignores null.
   */
  void add(@Nullable AutoCloseable writer) {
    if (writer == null) {
      return;
    }
    synchronized (OPEN) {
      if (!ending) {
        pending.add(writer);
        return;
      }
    }
    remove(writer);
  }

  /**
   * Adds an output that {@code cancel} removes. {@code cancel} returns false if the output is
   * complete.
   */
  void add(Path out, BooleanSupplier cancel) {
    add(
        () -> {
          boolean isRemoved = cancel.getAsBoolean();
          synchronized (OPEN) {
            hasRemovedOutput |= isRemoved;
            if (!isRemoved) {
              COMPLETE.add(out);
            }
          }
        });
  }

  static List<Path> complete() {
    synchronized (OPEN) {
      return List.copyOf(COMPLETE);
    }
  }

  /** Returns true if {@link #removeAll} removed an output that was not complete. */
  static boolean hasRemovedOutput() {
    synchronized (OPEN) {
      return hasRemovedOutput;
    }
  }

  /** Marks the command as over. A later signal then removes nothing, and the exit status is 0. */
  void finish() {
    synchronized (OPEN) {
      OPEN.remove(this);
      isOver = !ending;
    }
  }

  static boolean isOver() {
    synchronized (OPEN) {
      return isOver;
    }
  }

  /**
   * Removes all unfinished outputs, including those that are added later. Returns true if a command
   * was running.
   */
  static boolean removeAll() {
    List<AutoCloseable> all = new ArrayList<>();
    boolean isRunning;
    synchronized (OPEN) {
      ending = true;
      isRunning = !OPEN.isEmpty();
      OPEN.forEach(each -> all.addAll(each.pending));
      hasRemovedOutput = all.stream().anyMatch(WholeFile.class::isInstance);
    }
    all.forEach(Unfinished::remove);
    return isRunning;
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
