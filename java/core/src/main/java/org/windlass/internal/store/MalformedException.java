// SPDX-License-Identifier: Apache-2.0
package org.windlass.internal.store;

import java.io.IOException;

/** Bytes that are no frame of the protocol, or not what a value at a store consists of. */
public final class MalformedException extends IOException {
  private static final long serialVersionUID = 1L;

  public MalformedException(String message) {
    super(message);
  }
}
