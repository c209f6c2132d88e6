// SPDX-License-Identifier: Apache-2.0
package org.windlass.internal.store;

import java.nio.ByteBuffer;
import java.security.MessageDigest;
import java.security.NoSuchAlgorithmException;

/**
 * Computes HMAC-SHA256 (RFC 2104). It does not use {@code javax.crypto.Mac}, whose first use loads
 * and checks all security providers. That would take about 20 ms in each process that starts.
 */
final class Hmac {
  private static final int BLOCK_BYTES = 64;

  private final MessageDigest inner;
  private final MessageDigest outer;
  private final byte[] innerKey = new byte[BLOCK_BYTES];
  private final byte[] outerKey = new byte[BLOCK_BYTES];

  Hmac(byte[] key) {
    if (key.length > BLOCK_BYTES) {
      throw new IllegalArgumentException("a key of " + key.length + " bytes");
    }
    try {
      inner = MessageDigest.getInstance("SHA-256");
      outer = MessageDigest.getInstance("SHA-256");
    } catch (NoSuchAlgorithmException e) {
      throw new IllegalStateException("every JDK has SHA-256", e);
    }
    for (int i = 0; i < BLOCK_BYTES; i++) {
      int word = i < key.length ? key[i] : 0;
      innerKey[i] = (byte) (word ^ 0x36);
      outerKey[i] = (byte) (word ^ 0x5c);
    }
    inner.update(innerKey);
  }

  void update(byte... bytes) {
    inner.update(bytes);
  }

  void update(ByteBuffer bytes) {
    inner.update(bytes);
  }

  /** Returns the HMAC of the bytes given to {@link #update} since the last call. */
  byte[] code() {
    outer.update(outerKey);
    byte[] code = outer.digest(inner.digest());
    inner.update(innerKey);
    return code;
  }
}
