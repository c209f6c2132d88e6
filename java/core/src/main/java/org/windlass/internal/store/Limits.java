// SPDX-License-Identifier: Apache-2.0
package org.windlass.internal.store;

import java.nio.charset.StandardCharsets;
import java.util.Map;
import org.jspecify.annotations.Nullable;
import org.windlass.error.InvalidArgumentException;
import org.windlass.error.ResourceException;

/** Limits of a {@link Store}. They are in bytes unless the comment of a limit says otherwise. */
public final class Limits {
  /** Largest size of a key, in bytes of UTF-8. */
  public static final int KEY = 512;

  /**
   * Largest size of a value, in bytes. A compare-and-set of two values of this size fits into one
   * request of etcd.
   */
  public static final int VALUE = 512 << 10;

  /** Largest size of all keys and values together, in bytes; see {@link #cost}. */
  public static final long TOTAL = 64L << 20;

  /**
   * Bytes that {@link #cost} adds for each key, in addition to two bytes for each of the key's
   * characters.
   */
  public static final int ENTRY = 64;

  /**
   * Largest size of the keys that one call lists, in bytes. Each key counts its UTF-8 and two
   * bytes.
   */
  public static final int LISTING = 2 * VALUE;

  /** Largest number of keys that one call waits for. */
  public static final int WATCHED = 4;

  private Limits() {}

  public static void key(String key) {
    prefix(key);
    if (key.isEmpty()) {
      throw new InvalidArgumentException("key is empty");
    }
  }

  public static void prefix(String prefix) {
    if (!StandardCharsets.UTF_8.newEncoder().canEncode(prefix)) {
      throw new InvalidArgumentException(
          "a key contains an unpaired surrogate, which UTF-8 can't encode");
    }
    int bytes = bytes(prefix);
    if (bytes > KEY) {
      throw new InvalidArgumentException(
          "a key has " + bytes + " bytes of UTF-8; at most " + KEY + " are allowed");
    }
  }

  public static int bytes(String text) {
    return text.getBytes(StandardCharsets.UTF_8).length;
  }

  /** Returns the number of bytes by which {@code key} counts towards {@link #LISTING}. */
  public static int listing(String key) {
    return bytes(key) + Short.BYTES;
  }

  public static void value(byte @Nullable [] value) {
    if (value != null && value.length > VALUE) {
      throw new InvalidArgumentException(
          "a value has " + value.length + " bytes; at most " + VALUE + " are allowed");
    }
  }

  public static void watched(Map<String, byte @Nullable []> seen) {
    if (seen.isEmpty() || seen.size() > WATCHED) {
      throw new InvalidArgumentException(
          "a wait for " + seen.size() + " keys; it may be for 1 to " + WATCHED);
    }
    seen.forEach(
        (key, value) -> {
          key(key);
          value(value);
        });
  }

  /**
   * Returns the number of bytes by which {@code key}, without its value, counts towards {@link
   * #TOTAL}.
   */
  public static long cost(String key) {
    return ENTRY + 2L * key.length();
  }

  public static ResourceException full(long bytes, long more) {
    return new ResourceException(
        "the store has " + bytes + " of at most " + TOTAL + " bytes, and this takes " + more
            + " more");
  }

  public static ResourceException tooManyKeys() {
    return new ResourceException(
        "the keys with this prefix have more than " + LISTING + " bytes; ask with a longer prefix");
  }
}
