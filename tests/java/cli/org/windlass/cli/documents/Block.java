// SPDX-License-Identifier: Apache-2.0
package org.windlass.cli.documents;

/**
 * A fenced block of a page.
 *
 * @param page its file, relative to the root, such as {@code docs/reference/views.md}
 * @param line of the fence that opens it, counted from 1
 * @param language the first word behind that fence, empty where there is none
 * @param word the second one, which says what is done with it, empty where there is none
 * @param text its lines, each with its end
 */
record Block(String page, int line, String language, String word, String text) {
  /** Such as {@code docs/reference/views.md:21}. */
  String place() {
    return page + ":" + line;
  }

  /** Where it stands and what is behind its fence. */
  @Override
  public String toString() {
    return (place() + " " + language + " " + word).strip();
  }
}
