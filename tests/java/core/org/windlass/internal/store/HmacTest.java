// SPDX-License-Identifier: Apache-2.0
package org.windlass.internal.store;

import static org.assertj.core.api.Assertions.assertThat;

import java.nio.ByteBuffer;
import java.util.Random;
import javax.crypto.Mac;
import javax.crypto.spec.SecretKeySpec;
import org.junit.jupiter.api.Test;

/** An {@link Hmac} gives what the JDK's own gives, for every length of a key and one after the other. */
class HmacTest {
  @Test
  void itIsThatOfTheJdk() throws Exception {
    Random random = new Random(1);
    for (int length = 1; length <= 64; length++) {
      byte[] key = bytes(random, length);
      Hmac own = new Hmac(key);
      Mac other = Mac.getInstance("HmacSHA256");
      other.init(new SecretKeySpec(key, "HmacSHA256"));
      for (int i = 0; i < 4; i++) {
        byte[] one = bytes(random, random.nextInt(200));
        byte[] two = bytes(random, random.nextInt(200));
        own.update(one);
        own.update(ByteBuffer.wrap(two));
        other.update(one);
        assertThat(own.code()).isEqualTo(other.doFinal(two));
      }
    }
  }

  private static byte[] bytes(Random random, int length) {
    byte[] bytes = new byte[length];
    random.nextBytes(bytes);
    return bytes;
  }
}
