// SPDX-License-Identifier: Apache-2.0
package org.windlass.internal.rendezvous;

/** Thrown if ranks have not joined the first round of an all-gather, and have given up. */
public final class OthersGoneException extends RuntimeException {
  private static final long serialVersionUID = 1L;

  public OthersGoneException() {
    super("the other ranks ended or restarted before they joined; see their output");
  }
}
