// SPDX-License-Identifier: Apache-2.0
package org.windlass.internal.store;

import java.nio.ByteBuffer;
import java.nio.CharBuffer;
import java.nio.charset.CharacterCodingException;
import java.nio.charset.StandardCharsets;
import java.util.Objects;
import org.windlass.internal.FailureMaker;
import org.windlass.internal.Native;

/** How much a {@link Store} takes, in bytes. */
public final class Limits {
  /** Of a key, as UTF-8. */
  public static final int KEY = 512;

  /** Of a value: a compare-and-set of two such stays below what etcd takes as one request. */
  public static final int VALUE = 512 << 10;

  /** Of all keys and values together, a key counted as {@link #ENTRY} more than its letters. */
  public static final long TOTAL = 64L << 20;

  /** What a key costs beside its letters, of two bytes each. */
  public static final int ENTRY = 64;

  /** Of the keys that one call lists, each counted as two more than its UTF-8. */
  public static final int LISTING = 2 * VALUE;

  private Limits() {}

  /** {@code key} as UTF-8. */
  public static byte[] key(String key, FailureMaker failures) {
    Objects.requireNonNull(key, "key");
    if (key.isEmpty()) {
      throw failures.make(Native.WL_INVALID_ARGUMENT, "key is empty");
    }
    return prefix(key, failures);
  }

  /** What keys begin with, as UTF-8; it may be empty. */
  public static byte[] prefix(String prefix, FailureMaker failures) {
    Objects.requireNonNull(prefix, "prefix");
    byte[] bytes = utf8(prefix);
    if (bytes == null) {
      throw failures.make(
          Native.WL_INVALID_ARGUMENT, "a key holds half of a surrogate pair, which is no letter");
    }
    if (bytes.length > KEY) {
      throw failures.make(
          Native.WL_INVALID_ARGUMENT,
          "a key has " + bytes.length + " bytes of UTF-8; it may have " + KEY);
    }
    return bytes;
  }

  /** Refuses a value that is too long; null passes. */
  public static void value(byte[] value, FailureMaker failures) {
    if (value != null && value.length > VALUE) {
      throw failures.make(
          Native.WL_INVALID_ARGUMENT,
          "a value has " + value.length + " bytes; it may have " + VALUE);
    }
  }

  /** What {@code key} counts beside its value. */
  public static long cost(String key) {
    return ENTRY + 2L * key.length();
  }

  /** Of a store that has {@code bytes}, to which {@code more} can't be added. */
  public static Refusal full(long bytes, long more) {
    return new Refusal(
        Native.WL_RESOURCE,
        "the store has " + bytes + " of at most " + TOTAL + " bytes, and this takes " + more
            + " more");
  }

  /** Of keys that are more than {@link #LISTING}. */
  public static Refusal tooManyKeys() {
    return new Refusal(
        Native.WL_RESOURCE,
        "the keys that begin so have more than " + LISTING + " bytes; ask with a longer prefix");
  }

  /** {@code text} as UTF-8; null where it is none. */
  static byte[] utf8(String text) {
    try {
      ByteBuffer bytes = StandardCharsets.UTF_8.newEncoder().encode(CharBuffer.wrap(text));
      byte[] exact = new byte[bytes.remaining()];
      bytes.get(exact);
      return exact;
    } catch (CharacterCodingException e) {
      return null;
    }
  }
}
