// SPDX-License-Identifier: Apache-2.0
package org.windlass.cli.verify;

import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import org.windlass.DType;
import org.windlass.Tensor;
import org.windlass.checkpoint.SafetensorsFile;

/** A tensor in a file, as bits. Threads may share it. */
final class StoredTensor {
  private static final long SEGMENT = 1 << 30;
  // An element that begins in one segment ends in it too.
  private static final int MARGIN = 8;

  private final DType dtype;
  private final ByteBuffer[] segments;

  StoredTensor(SafetensorsFile file, String name) {
    Tensor bytes = file.bytes(name);
    this.dtype = file.entry(name).dtype();
    this.segments = new ByteBuffer[(int) ((bytes.bytes() + SEGMENT - 1) / SEGMENT)];
    for (int i = 0; i < segments.length; i++) {
      long length = Math.min(bytes.bytes() - i * SEGMENT, SEGMENT + MARGIN);
      segments[i] =
          bytes.asByteBuffer(i * SEGMENT, (int) length).order(ByteOrder.LITTLE_ENDIAN);
    }
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
      ByteBuffer segment = segments[(int) (bit / 8 / SEGMENT)];
      // Those that begin in this segment.
      long left = SEGMENT * 8 - bit % (SEGMENT * 8);
      long most = stride == 0 ? count : (left + stride * width - 1) / (stride * width);
      int end = (int) Math.min(count, done + most);
      long at = bit / 8 % SEGMENT;
      long step = stride * width / 8;
      switch (width) {
        case 8 -> {
          for (; done < end; done++, at += step) {
            bits[done] = segment.get((int) at) & 0xffL;
          }
        }
        case 16 -> {
          for (; done < end; done++, at += step) {
            bits[done] = segment.getShort((int) at) & 0xffffL;
          }
        }
        case 32 -> {
          for (; done < end; done++, at += step) {
            bits[done] = segment.getInt((int) at) & 0xffffffffL;
          }
        }
        case 64 -> {
          for (; done < end; done++, at += step) {
            bits[done] = segment.getLong((int) at);
          }
        }
        default -> {
          long inSegment = bit % (SEGMENT * 8);
          for (; done < end; done++, inSegment += stride * width) {
            bits[done] = narrow(segment, (int) (inSegment / 8), (int) (inSegment % 8), width);
          }
        }
      }
    }
    return bits;
  }

  /** Elements of less than a byte follow one another from the lowest bit on. */
  private static long narrow(ByteBuffer segment, int at, int shift, int width) {
    int low = segment.get(at) & 0xff;
    int high = shift + width > 8 ? segment.get(at + 1) & 0xff : 0;
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
    for (long done = 0; done < count; ) {
      long at = first + done;
      long otherAt = otherFirst + done;
      long length =
          Math.min(
              count - done, SEGMENT - Math.max(at % SEGMENT, otherAt % SEGMENT));
      int differs =
          segments[(int) (at / SEGMENT)]
              .slice((int) (at % SEGMENT), (int) length)
              .mismatch(
                  other
                      .segments[(int) (otherAt / SEGMENT)]
                      .slice((int) (otherAt % SEGMENT), (int) length));
      if (differs >= 0) {
        return done + differs;
      }
      done += length;
    }
    return count;
  }
}
