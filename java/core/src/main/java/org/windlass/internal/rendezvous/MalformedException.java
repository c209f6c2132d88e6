// SPDX-License-Identifier: Apache-2.0
package org.windlass.internal.rendezvous;

import java.io.IOException;

/** Bytes that are no frame of the protocol. */
final class MalformedException extends IOException {
  private static final long serialVersionUID = 1L;

  MalformedException(String message) {
    super(message);
  }
}
