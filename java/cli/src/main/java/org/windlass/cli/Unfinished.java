// SPDX-License-Identifier: Apache-2.0
package org.windlass.cli;

import java.nio.file.Path;
import java.util.ArrayList;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Set;
import java.util.function.BooleanSupplier;
import org.windlass.error.WindlassException;

/**
 * Things that a command has not finished yet: where a signal ends the process before the command is
 * over, {@link ProcessEnd} takes them away.
 */
final class Unfinished implements AutoCloseable {
  /** Those of commands that run; guards {@code ending} and what each of them holds. */
  private static final Set<Unfinished> OPEN = new LinkedHashSet<>();

  private static boolean ending;

  private static boolean isOver;

  /** Outputs that {@link #removeAll} found complete, and left. */
  private static final List<Path> COMPLETE = new ArrayList<>();

  private final List<AutoCloseable> pending = new ArrayList<>();

  Unfinished() {
    synchronized (OPEN) {
      OPEN.add(this);
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

  /**
   * Adds an output that cannot be removed once it is complete.
   *
   * @param cancel removes {@code out}, or returns false if it is complete
   */
  void add(Path out, BooleanSupplier cancel) {
    add(
        () -> {
          if (!cancel.getAsBoolean()) {
            synchronized (OPEN) {
              COMPLETE.add(out);
            }
          }
        });
  }

  /** Outputs that were complete when {@link #removeAll} came to them. */
  static List<Path> complete() {
    synchronized (OPEN) {
      return List.copyOf(COMPLETE);
    }
  }

  /**
   * Marks the command as over: its result is printed. A signal from now on has nothing to end, and
   * the status is 0.
   */
  void finish() {
    synchronized (OPEN) {
      OPEN.remove(this);
      isOver = !ending;
    }
  }

  /** Returns whether the command was over before a signal came. */
  static boolean isOver() {
    synchronized (OPEN) {
      return isOver;
    }
  }

  /**
   * Removes what all commands have not finished, and from now on what is added.
   *
   * @return whether a command was at something
   */
  static boolean removeAll() {
    List<AutoCloseable> all = new ArrayList<>();
    synchronized (OPEN) {
      ending = true;
      OPEN.forEach(each -> all.addAll(each.pending));
    }
    all.forEach(Unfinished::remove);
    return !all.isEmpty();
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
