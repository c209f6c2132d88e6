// SPDX-License-Identifier: Apache-2.0
package org.windlass.cli;

import java.util.ArrayList;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Set;
import org.windlass.WindlassException;

/**
 * Things that a command has not finished yet: where a signal ends the process before the command is
 * over, {@link ProcessEnd} takes them away.
 */
final class Unfinished implements AutoCloseable {
  /** Those of commands that run; guards {@code ending} and what each of them holds. */
  private static final Set<Unfinished> OPEN = new LinkedHashSet<>();

  private static boolean ending;

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
