// SPDX-License-Identifier: Apache-2.0
package org.windlass.verify;

import java.nio.ByteBuffer;
import org.windlass.DType;
import org.windlass.checkpoint.SafetensorsEntry;
import org.windlass.checkpoint.SafetensorsFile;
import org.windlass.error.VerificationFailedException;
import org.windlass.reshard.tensor.Runs;
import org.windlass.reshard.tensor.TargetTensor;

/**
 * Reads the bits of a tensor in a file. Elements of less than a byte fill a byte from its lowest
 * bit on. Thread-safe.
 */
final class StoredTensor {
  private final SafetensorsFile file;
  private final String name;
  private final DType dtype;
  private final int width;
  private final long bytes;

  StoredTensor(SafetensorsFile file, String name) {
    this.file = file;
    this.name = name;
    SafetensorsEntry entry = file.entry(name);
    this.dtype = entry.dtype();
    this.width = dtype.bits();
    this.bytes = entry.bytes();
  }

  /** Reads bytes from byte {@code from} on. Lowers the limit if the tensor ends earlier. */
  void read(long from, ByteBuffer into) {
    into.limit((int) Math.min(into.limit(), bytes - from));
    file.read(name, from, into);
  }

  DType dtype() {
    return dtype;
  }

  /** Returns the bits of the element at this index in the file's order. */
  long bits(long element) {
    return bits(element, 1, 1)[0];
  }

  /**
   * Throws unless the elements that no run covers are zero.
   *
   * @param who names the rank that holds this tensor, for messages
   * @param between is called repeatedly. An exception ends the check
   * @throws VerificationFailedException naming the first element that is not zero
   */
  void requirePadding(Runs held, String who, Runnable between) {
    long[] local = held.shape();
    long[] strides = Holding.rowMajor(local);
    long elements = TargetTensor.elements(local);
    for (int d = 0; d < local.length && elements > 0; d++) {
      for (Runs.Run gap : Holding.gaps(held, d)) {
        long length = gap.end() * strides[d];
        for (long at = gap.local() * strides[d]; length > 0 && at < elements; ) {
          between.run();
          long zeros = zeros(at, length);
          if (zeros < length) {
            throw new VerificationFailedException(
                "tensor \"" + name + "\" has padding at element " + (at + zeros) + " of " + who
                    + ", which is 0x" + Long.toHexString(bits(at + zeros)) + " and not 0");
          }
          at += local[d] * strides[d];
        }
      }
    }
  }

  /** Returns how many of the {@code count} elements are zero before the first that is not. */
  private long zeros(long first, long count) {
    long at = 0;
    while (at < count) {
      for (long bits : bits(first + at, 1, (int) Math.min(count - at, FilePages.BYTES))) {
        if (bits != 0) {
          return at;
        }
        at++;
      }
    }
    return count;
  }

  /**
   * Returns the bits of {@code count} elements from {@code first} on, {@code stride} apart.
   * Adjacent ones take at most {@link FilePages#RANGE_BYTES}.
   */
  long[] bits(long first, long stride, int count) {
    long[] bits = new long[count];
    FilePages pages = FilePages.ofThread();
    long mask = -1L >>> Long.SIZE - width;
    if (stride == 1 && count > 1) {
      long begin = first * width >>> 3;
      long end = (first + count) * width + 7 >>> 3;
      ByteBuffer range = pages.range(0, this, begin, (int) (end - begin)).clear();
      int bit = (int) (first * width & 7);
      for (int i = 0; i < count; i++, bit += width) {
        bits[i] = range.getLong(bit >>> 3) >>> (bit & 7) & mask;
      }
      return bits;
    }
    long bit = first * width;
    for (int i = 0; i < count; i++, bit += stride * width) {
      bits[i] = pages.word(this, bit >>> 3) >>> (bit & 7) & mask;
    }
    return bits;
  }

  /**
   * Compares {@code count} elements from {@code first} on with those of {@code other} from {@code
   * otherFirst} on.
   *
   * @return the number of equal elements before the first that differs, {@code count} if none does
   */
  long mismatch(long first, StoredTensor other, long otherFirst, long count) {
    long same = 0;
    if (first * width % Byte.SIZE == 0 && otherFirst * width % Byte.SIZE == 0) {
      long begin = first * width / Byte.SIZE;
      same = sameBytes(begin, other, otherFirst * width / Byte.SIZE, count * width / Byte.SIZE);
      same = same * Byte.SIZE / width;
    }
    while (same < count && bits(first + same) == other.bits(otherFirst + same)) {
      same++;
    }
    return same;
  }

  /** Returns how many bytes are equal before the first difference, at most {@code count}. */
  private long sameBytes(long first, StoredTensor other, long otherFirst, long count) {
    FilePages pages = FilePages.ofThread();
    for (long done = 0; done < count; done += FilePages.RANGE_BYTES) {
      int length = (int) Math.min(count - done, FilePages.RANGE_BYTES);
      ByteBuffer own = pages.range(0, this, first + done, length);
      int differs = own.mismatch(pages.range(1, other, otherFirst + done, length));
      if (differs >= 0) {
        return done + differs;
      }
    }
    return count;
  }
}
