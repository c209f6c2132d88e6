// SPDX-License-Identifier: Apache-2.0
package org.windlass.cli.verify;

import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import org.windlass.DType;
import org.windlass.checkpoint.SafetensorsFile;

/** A tensor in a file, read forward through a buffer of its own. */
final class StoredTensor {
  private static final int WINDOW = 1 << 20;

  private final SafetensorsFile file;
  private final String name;
  private final DType dtype;
  private final long bytes;
  private final ByteBuffer window;
  private long windowStart;
  private long windowEnd;

  StoredTensor(SafetensorsFile file, String name) {
    this.file = file;
    this.name = name;
    this.dtype = file.entry(name).dtype();
    this.bytes = file.entry(name).bytes();
    this.window =
        ByteBuffer.allocate((int) Math.min(WINDOW, bytes)).order(ByteOrder.LITTLE_ENDIAN);
  }

  DType dtype() {
    return dtype;
  }

  /** Elements that {@link #bits} reaches after one {@link #load}. */
  static long reach(DType dtype) {
    return (WINDOW - 2) * 8L / dtype.bits();
  }

  /**
   * Makes {@code count} elements from {@code first} on readable; {@code count} is at most the
   * reach.
   */
  void load(long first, long count) {
    long from = first * dtype.bits() / 8;
    long to = ((first + count) * dtype.bits() + 7) / 8;
    if (from >= windowStart && to <= windowEnd) {
      return;
    }
    windowStart = from;
    windowEnd = Math.min(bytes, from + WINDOW);
    window.clear().limit((int) (windowEnd - windowStart));
    file.read(name, windowStart, window);
  }

  /** The bits of a loaded element. */
  long bits(long element) {
    int width = dtype.bits();
    long bit = element * width;
    int at = (int) (bit / 8 - windowStart);
    return switch (width) {
      case 8 -> window.get(at) & 0xffL;
      case 16 -> window.getShort(at) & 0xffffL;
      case 32 -> window.getInt(at) & 0xffffffffL;
      case 64 -> window.getLong(at);
      default -> narrow(at, (int) (bit % 8), width);
    };
  }

  /** Elements of less than a byte follow one another from the lowest bit on. */
  private long narrow(int at, int shift, int width) {
    int low = window.get(at) & 0xff;
    int high = shift + width > 8 ? window.get(at + 1) & 0xff : 0;
    return (low | high << 8) >> shift & ((1 << width) - 1);
  }

  /**
   * The first of {@code count} elements that differs from {@code other}'s; {@code count} if none
   * does. Both are loaded.
   */
  long mismatch(long first, StoredTensor other, long otherFirst, long count) {
    int width = dtype.bits();
    if (width >= 8) {
      int bytesEach = width / 8;
      ByteBuffer mine = window.slice((int) (first * bytesEach - windowStart), (int) count * bytesEach);
      ByteBuffer theirs =
          other.window.slice(
              (int) (otherFirst * bytesEach - other.windowStart), (int) count * bytesEach);
      int at = mine.mismatch(theirs);
      return at < 0 ? count : at / bytesEach;
    }
    for (long i = 0; i < count; i++) {
      if (bits(first + i) != other.bits(otherFirst + i)) {
        return i;
      }
    }
    return count;
  }
}
