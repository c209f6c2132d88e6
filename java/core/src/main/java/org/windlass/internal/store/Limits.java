// SPDX-License-Identifier: Apache-2.0
package org.windlass.internal.store;

import java.nio.charset.StandardCharsets;
import java.util.Objects;
import org.windlass.error.InvalidArgumentException;
import org.windlass.internal.Native;

/** Limits of a {@link Store} in bytes. */
public final class Limits {
  /** Longest key, as UTF-8. */
  public static final int KEY = 512;

  /** Longest value. A compare-and-set of two such values fits into one request of etcd. */
  public static final int VALUE = 512 << 10;

  /** Most bytes of all keys and values; see {@link #cost}. */
  public static final long TOTAL = 64L << 20;

  /** Bytes that a key counts in addition to its letters of two bytes each. */
  public static final int ENTRY = 64;

  /** Most bytes of the keys that one call lists. Each key counts its UTF-8 and two bytes. */
  public static final int LISTING = 2 * VALUE;

  private Limits() {}

  /** Checks a key, and returns it as UTF-8. */
  public static byte[] key(String key) {
    Objects.requireNonNull(key, "key");
    if (key.isEmpty()) {
      throw new InvalidArgumentException("key is empty");
    }
    return prefix(key);
  }

  /** Checks a prefix of keys, which may be empty, and returns it as UTF-8. */
  public static byte[] prefix(String prefix) {
    byte[] bytes = utf8(Objects.requireNonNull(prefix, "prefix"));
    if (bytes == null) {
      throw new InvalidArgumentException("a key holds half of a surrogate pair, which is no letter");
    }
    if (bytes.length > KEY) {
      throw new InvalidArgumentException(
          "a key has " + bytes.length + " bytes of UTF-8; it may have " + KEY);
    }
    return bytes;
  }

  /** Checks the length of a value, which may be null. */
  public static void value(byte[] value) {
    if (value != null && value.length > VALUE) {
      throw new InvalidArgumentException(
          "a value has " + value.length + " bytes; it may have " + VALUE);
    }
  }

  /** Number of bytes that {@code key} counts without its value. */
  public static long cost(String key) {
    return ENTRY + 2L * key.length();
  }

  /** Error of a store with {@code bytes} that has no room for {@code more}. */
  public static Refusal full(long bytes, long more) {
    return new Refusal(
        Native.WL_RESOURCE,
        "the store has " + bytes + " of at most " + TOTAL + " bytes, and this takes " + more
            + " more");
  }

  /** Error of a call that would list more than {@link #LISTING}. */
  public static Refusal tooManyKeys() {
    return new Refusal(
        Native.WL_RESOURCE,
        "the keys that begin so have more than " + LISTING + " bytes; ask with a longer prefix");
  }

  /** Returns {@code text} as UTF-8; null if it has half of a surrogate pair. */
  static byte[] utf8(String text) {
    boolean isWhole = StandardCharsets.UTF_8.newEncoder().canEncode(text);
    return isWhole ? text.getBytes(StandardCharsets.UTF_8) : null;
  }
}
