// SPDX-License-Identifier: Apache-2.0
package org.windlass.internal.rendezvous;

/** The ranks of the other job gave up this start before they joined it. */
public final class OthersGoneException extends RuntimeException {
  private static final long serialVersionUID = 1L;

  OthersGoneException(RuntimeException late) {
    super("the others have ended, or met anew, before they came; see what they say", late);
  }
}
