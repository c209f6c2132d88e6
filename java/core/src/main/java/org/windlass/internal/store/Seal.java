// SPDX-License-Identifier: Apache-2.0
package org.windlass.internal.store;

import java.nio.ByteBuffer;
import java.security.MessageDigest;
import java.util.Arrays;
import javax.crypto.Mac;

/**
 * One direction of a session. Its frames are numbered from 0 on, and the seal of a frame is the
 * start of HMAC-SHA256 over its number, its length and its body. Therefore a frame that was
 * changed, repeated, dropped, moved or sent back does not fit.
 */
final class Seal {
  /** Bytes of a seal. */
  static final int BYTES = 16;

  private final Mac mac;
  private long number;

  /** Takes the key of this session and direction. */
  Seal(byte[] key) {
    mac = Token.mac(key);
  }

  /** Returns the seal of the next frame. Its parts, length and body, keep their positions. */
  byte[] next(ByteBuffer... parts) {
    mac.update(ByteBuffer.allocate(Long.BYTES).putLong(number++).flip());
    for (ByteBuffer part : parts) {
      mac.update(part.duplicate());
    }
    return Arrays.copyOf(mac.doFinal(), BYTES);
  }

  /**
   * Checks the next frame.
   *
   * @param frame its length and body
   * @throws MalformedException if {@code seal} is not its seal
   */
  void require(ByteBuffer frame, ByteBuffer seal) throws MalformedException {
    if (!MessageDigest.isEqual(Wire.bytes(seal, BYTES), next(frame))) {
      throw new MalformedException(
          "a frame that does not fit its seal: it was changed, repeated, dropped or moved on its"
              + " way");
    }
  }
}
