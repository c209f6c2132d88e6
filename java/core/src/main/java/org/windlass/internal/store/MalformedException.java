// SPDX-License-Identifier: Apache-2.0
package org.windlass.internal.store;

import java.io.IOException;

/** Thrown for bytes that are not a valid frame of the protocol, or not a valid value of a store. */
public final class MalformedException extends IOException {
  private static final long serialVersionUID = 1L;

  public MalformedException(String message) {
    super(message);
  }
}
