// SPDX-License-Identifier: Apache-2.0
package org.windlass.internal;

/** Breaks texts into lines that fit a terminal. */
public final class Wrapped {
  /** A space at which no line is broken. */
  public static final String STAYS = "\u00a0";

  /** Largest number of characters of a line. */
  private static final int COLUMNS = 80;

  private Wrapped() {}

  /**
   * Returns {@code name} and {@code text}, broken into lines. Later lines are indented to where
   * {@code text} begins.
   */
  public static String text(String name, String text) {
    StringBuilder lines = new StringBuilder();
    String line = name;
    for (String word : text.split(" ")) {
      if (line.length() > name.length() && line.length() + word.length() > COLUMNS) {
        lines.append(line.stripTrailing()).append('\n');
        line = " ".repeat(name.length());
      }
      line += word + " ";
    }
    return lines.append(line.stripTrailing()).toString().replace(STAYS, " ");
  }
}
