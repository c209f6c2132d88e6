// SPDX-License-Identifier: Apache-2.0
package org.windlass.internal;

/**
 * Layout of the C ABI's structs, as the compiler of the JNI library saw it: for code that fills or
 * reads one in a direct buffer.
 */
public final class NativeStruct {
  static {
    NativeLoader.load();
  }

  private NativeStruct() {}

  /** Bytes of one struct, such as {@code "wl_error_t"}. */
  public static int bytes(String struct) {
    return find(struct);
  }

  /** Bytes from the start of {@code struct} to {@code field}. */
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
