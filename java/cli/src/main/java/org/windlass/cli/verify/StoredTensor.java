// SPDX-License-Identifier: Apache-2.0
package org.windlass.cli.verify;

import java.nio.ByteBuffer;
import org.windlass.DType;
import org.windlass.checkpoint.SafetensorsFile;

/** A tensor in a file, as bits. Threads may share it. */
final class StoredTensor {
  private static final long PAGE = FilePages.BYTES;

  private final SafetensorsFile file;
  private final String name;
  private final DType dtype;
  private final long bytes;

  StoredTensor(SafetensorsFile file, String name) {
    this.file = file;
    this.name = name;
    this.dtype = file.entry(name).dtype();
    this.bytes = file.entry(name).bytes();
  }

  /** Fills a buffer with the bytes from {@code from} on, as far as there are any. */
  void read(long from, ByteBuffer into) {
    into.limit((int) Math.min(into.capacity(), bytes - from));
    file.read(name, from, into);
  }

  private ByteBuffer page(long number) {
    return FilePages.ofThread().get(this, number);
  }

  DType dtype() {
    return dtype;
  }

  /** The bits of an element. */
  long bits(long element) {
    return bits(element, 1, 1)[0];
  }

  /** The bits of {@code count} elements that are {@code stride} apart. */
  long[] bits(long first, long stride, int count) {
    long[] bits = new long[count];
    int width = dtype.bits();
    for (int done = 0; done < count; ) {
      long bit = (first + done * stride) * width;
      ByteBuffer page = page(bit / 8 / PAGE);
      // Those that begin in this page.
      long left = PAGE * 8 - bit % (PAGE * 8);
      long most = stride == 0 ? count : (left + stride * width - 1) / (stride * width);
      int end = (int) Math.min(count, done + most);
      long at = bit / 8 % PAGE;
      long step = stride * width / 8;
      switch (width) {
        case 8 -> {
          for (; done < end; done++, at += step) {
            bits[done] = page.get((int) at) & 0xffL;
          }
        }
        case 16 -> {
          for (; done < end; done++, at += step) {
            bits[done] = page.getShort((int) at) & 0xffffL;
          }
        }
        case 32 -> {
          for (; done < end; done++, at += step) {
            bits[done] = page.getInt((int) at) & 0xffffffffL;
          }
        }
        case 64 -> {
          for (; done < end; done++, at += step) {
            bits[done] = page.getLong((int) at);
          }
        }
        default -> {
          long inPage = bit % (PAGE * 8);
          for (; done < end; done++, inPage += stride * width) {
            bits[done] = narrow(page, (int) (inPage / 8), (int) (inPage % 8), width);
          }
        }
      }
    }
    return bits;
  }

  /** Elements of less than a byte follow one another from the lowest bit on. */
  private static long narrow(ByteBuffer page, int at, int shift, int width) {
    int low = page.get(at) & 0xff;
    int high = shift + width > 8 ? page.get(at + 1) & 0xff : 0;
    return (low | high << 8) >> shift & ((1 << width) - 1);
  }

  /**
   * The first of {@code count} elements that differs from {@code other}'s; {@code count} if none
   * does.
   */
  long mismatch(long first, StoredTensor other, long otherFirst, long count) {
    int width = dtype.bits();
    long same = 0;
    if (first * width % 8 == 0 && otherFirst * width % 8 == 0) {
      same = sameBytes(first * width / 8, other, otherFirst * width / 8, count * width / 8);
      same = same * 8 / width;
    }
    while (same < count && bits(first + same) == other.bits(otherFirst + same)) {
      same++;
    }
    return same;
  }

  /** How many of {@code count} bytes are the same before one differs. */
  private long sameBytes(long first, StoredTensor other, long otherFirst, long count) {
    FilePages pages = FilePages.ofThread();
    byte[] own = new byte[(int) PAGE];
    for (long done = 0; done < count; ) {
      long at = first + done;
      long otherAt = otherFirst + done;
      long length = Math.min(count - done, PAGE - Math.max(at % PAGE, otherAt % PAGE));
      // Both pages may have one slot.
      pages.get(this, at / PAGE).get((int) (at % PAGE), own, 0, (int) length);
      int differs =
          pages
              .get(other, otherAt / PAGE)
              .slice((int) (otherAt % PAGE), (int) length)
              .mismatch(ByteBuffer.wrap(own, 0, (int) length));
      if (differs >= 0) {
        return done + differs;
      }
      done += length;
    }
    return count;
  }
}
