// SPDX-License-Identifier: Apache-2.0
package org.windlass.internal;

import java.nio.Buffer;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.charset.StandardCharsets;
import java.util.Arrays;

public final class NativeMemory {
  static {
    NativeLoader.load();
  }

  private NativeMemory() {}

  /**
   * Returns a buffer over {@code bytes} bytes at {@code address}, in native byte order. The buffer
   * does not keep the memory valid.
   *
   * @param bytes at most {@link Integer#MAX_VALUE}
   */
  public static ByteBuffer buffer(long address, long bytes) {
    if (address == 0 || bytes < 0 || bytes > Integer.MAX_VALUE) {
      throw new IllegalArgumentException("no buffer of " + bytes + " bytes at address " + address);
    }
    return view(address, bytes).order(ByteOrder.nativeOrder());
  }

  /** Returns the address of index 0 of a direct buffer. The buffer's position does not matter. */
  public static long address(Buffer direct) {
    if (!direct.isDirect()) {
      throw new IllegalArgumentException("not a direct buffer: " + direct);
    }
    return addressOf(direct);
  }

  /** Returns {@code text} in UTF-8 with a final NUL. */
  public static byte[] utf8(String text) {
    if (text.indexOf('\0') >= 0) {
      throw new IllegalArgumentException("a NUL inside \"" + text + "\"");
    }
    byte[] bytes = text.getBytes(StandardCharsets.UTF_8);
    return Arrays.copyOf(bytes, bytes.length + 1);
  }

  /** Returns a copy of {@code values} in native memory, in native byte order. */
  public static ByteBuffer copy(int[] values) {
    ByteBuffer copy = Structs.allocate(values.length * Integer.BYTES);
    copy.asIntBuffer().put(values);
    return copy;
  }

  private static native ByteBuffer view(long address, long bytes);

  private static native long addressOf(Buffer direct);
}
