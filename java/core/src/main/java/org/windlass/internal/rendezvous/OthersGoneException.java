// SPDX-License-Identifier: Apache-2.0
package org.windlass.internal.rendezvous;

/** Thrown if ranks have not joined the first round of an all-gather, and have given up. */
public final class OthersGoneException extends RuntimeException {
  private static final long serialVersionUID = 1L;

  public OthersGoneException() {
    super("the others have ended, or started anew, before they came; see what they say");
  }
}
