// SPDX-License-Identifier: Apache-2.0
package org.windlass.internal.store;

import java.nio.ByteBuffer;
import java.security.MessageDigest;
import java.util.Arrays;

/**
 * Seals one direction of a session. Its frames are numbered from 0 on. The seal of a frame is the
 * start of HMAC-SHA256 over its number, its length and its body. A frame that was changed,
 * repeated, dropped, moved or sent back therefore has a wrong seal.
 */
final class Seal {
  static final int BYTES = 16;

  private final Hmac hmac;
  private long number;

  Seal(byte[] key) {
    hmac = new Hmac(key);
  }

  /**
   * Returns the seal of the next frame.
   *
   * @param parts length and body of the frame; the buffers' positions do not change
   */
  byte[] next(ByteBuffer... parts) {
    hmac.update(ByteBuffer.allocate(Long.BYTES).putLong(number++).flip());
    for (ByteBuffer part : parts) {
      hmac.update(part.duplicate());
    }
    return Arrays.copyOf(hmac.code(), BYTES);
  }

  void require(ByteBuffer frame, ByteBuffer seal) throws MalformedException {
    if (!MessageDigest.isEqual(Wire.bytes(seal, BYTES), next(frame))) {
      throw new MalformedException(
          "a frame that does not fit its seal: it was changed, repeated, dropped or moved on its"
              + " way");
    }
  }
}
