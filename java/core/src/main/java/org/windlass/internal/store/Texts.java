// SPDX-License-Identifier: Apache-2.0
package org.windlass.internal.store;

/**
 * Makes texts from peers safe to show: replaces control characters, which could change a terminal.
 */
public final class Texts {
  private Texts() {}

  /** Returns a peer's text with {@code ?} in place of control characters and line separators. */
  public static String printable(String text) {
    return text.replaceAll("[\\p{Cc}\\p{Cf}\\p{Zl}\\p{Zp}]", "?");
  }
}
