// SPDX-License-Identifier: Apache-2.0
package org.windlass.internal.store;

/** Cleans texts that peers send. */
public final class Texts {
  private Texts() {}

  /** Returns a peer's text without control characters, which could change a terminal. */
  public static String printable(String text) {
    return text.replaceAll("[\\p{Cc}\\p{Cf}\\p{Zl}\\p{Zp}]", "?");
  }
}
