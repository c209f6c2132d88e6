// SPDX-License-Identifier: Apache-2.0
package org.windlass.internal;

/** Breaks texts into lines that fit a terminal. */
public final class Wrapped {
  /** A space at which no line ends. */
  public static final String STAYS = "\u00a0";

  /** Most characters of a line. */
  private static final int COLUMNS = 80;

  private Wrapped() {}

  /** Returns the text after {@code name}, in lines that begin below its first character. */
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
