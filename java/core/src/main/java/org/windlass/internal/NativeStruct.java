// SPDX-License-Identifier: Apache-2.0
package org.windlass.internal;

/**
 * Returns sizes and offsets of the C ABI's structs, as computed by the compiler of the JNI library.
 * Used by code that fills or reads a struct in a direct buffer.
 */
public final class NativeStruct {
  static {
    NativeLoader.load();
  }

  private NativeStruct() {}

  /** Returns the size in bytes of one struct, such as {@code "wl_error_t"}. */
  public static int bytes(String struct) {
    return find(struct);
  }

  /** Returns the offset in bytes of {@code field} in {@code struct}. */
  public static int offset(String struct, String field) {
    return find(struct + "." + field);
  }

  private static int find(String name) {
    int bytes = layout(name);
    if (bytes < 0) {
      throw new IllegalArgumentException("the C ABI has no " + name);
    }
    return bytes;
  }

  private static native int layout(String name);
}
