// SPDX-License-Identifier: Apache-2.0
package org.windlass.internal.store;

/** Texts that others say. */
public final class Texts {
  private Texts() {}

  /** What a stranger says, without what would change the reader's terminal. */
  public static String printable(String text) {
    return text.replaceAll("[\\p{Cc}\\p{Cf}\\p{Zl}\\p{Zp}]", "?");
  }
}
