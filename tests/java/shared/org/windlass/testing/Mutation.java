// SPDX-License-Identifier: Apache-2.0
package org.windlass.testing;

import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.Arrays;
import java.util.Random;

/** Files and texts with one or two places changed, cut, repeated or exchanged for other words. */
public final class Mutation {
  private static final String[] WORDS = {
    "{", "}", "[", "]", ",", ":", "\"", "null", "true", "-1", "0", "1e9", "9223372036854775808",
    "\"F32\"", "\"BF16\"", "\"F4\"", "\"a\"", "\"__metadata__\"", "\"dtype\"", "\"shape\"",
    "\"data_offsets\"", "\"../x.safetensors\"", "\"layout\"", "\"2x2:S0,R\"", "\"weight_map\"",
    "\\ud800", "\\u0000", "\u00ff"
  };

  private Mutation() {}

  public static String of(String original, Random random) {
    byte[] bytes = original.getBytes(StandardCharsets.UTF_8);
    return new String(of(bytes, random), StandardCharsets.UTF_8);
  }

  public static byte[] of(byte[] original, Random random) {
    byte[] bytes = original;
    for (int change = random.nextInt(2); change >= 0 && bytes.length > 0; change--) {
      int at = random.nextInt(bytes.length);
      int end = Math.min(bytes.length, at + random.nextInt(12));
      byte[] word = WORDS[random.nextInt(WORDS.length)].getBytes(StandardCharsets.UTF_8);
      switch (random.nextInt(6)) {
        case 0 -> {
          bytes = bytes.clone();
          bytes[at] ^= (byte) (1 << random.nextInt(8));
        }
        case 1 -> bytes = Arrays.copyOf(bytes, at);
        case 2 -> bytes = joined(bytes, at, word, at);
        case 3 -> bytes = joined(bytes, at, word, end);
        case 4 -> bytes = joined(bytes, at, new byte[0], end);
        default -> bytes = joined(bytes, end, Arrays.copyOfRange(bytes, at, end), end);
      }
    }
    return bytes;
  }

  /** The bytes up to {@code end}, then {@code middle}, then those from {@code from} on. */
  private static byte[] joined(byte[] bytes, int end, byte[] middle, int from) {
    ByteBuffer all = ByteBuffer.allocate(end + middle.length + bytes.length - from);
    all.put(bytes, 0, end).put(middle).put(bytes, from, bytes.length - from);
    return all.array();
  }
}
