// SPDX-License-Identifier: Apache-2.0
package org.windlass.verify;

import java.nio.ByteBuffer;
import org.windlass.DType;
import org.windlass.checkpoint.SafetensorsEntry;
import org.windlass.checkpoint.SafetensorsFile;
import org.windlass.error.VerificationFailedException;

/** Reads the bits of a tensor in a file. Thread-safe. */
final class StoredTensor {
  private static final long PAGE = FilePages.BYTES;

  private final SafetensorsFile file;
  private final String name;
  private final DType dtype;
  private final long bytes;

  StoredTensor(SafetensorsFile file, String name) {
    this.file = file;
    this.name = name;
    SafetensorsEntry entry = file.entry(name);
    this.dtype = entry.dtype();
    this.bytes = entry.bytes();
  }

  /** Reads bytes from byte {@code from} on. Lowers the limit if the tensor ends earlier. */
  void read(long from, ByteBuffer into) {
    into.limit((int) Math.min(into.limit(), bytes - from));
    file.read(name, from, into);
  }

  private ByteBuffer page(long number) {
    return FilePages.ofThread().get(this, number);
  }

  DType dtype() {
    return dtype;
  }

  /** Returns the bits of the element at this index in the file's order. */
  long bits(long element) {
    return bits(element, 1, 1)[0];
  }

  /**
   * Throws unless the elements that no run of the holding covers are zero.
   *
   * @param who names the rank that holds this tensor, for messages
   * @param between is called repeatedly. An exception ends the check
   * @throws VerificationFailedException naming the first element that is not zero
   */
  void requirePadding(Holding held, String who, Runnable between) {
    long[] local = held.shape();
    long[] strides = Holding.rowMajor(local);
    long elements = Holding.elements(local);
    for (int d = 0; d < local.length && elements > 0; d++) {
      for (Holding.Run gap : held.gaps(d)) {
        long length = gap.length() * strides[d];
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
      for (long bits : bits(first + at, 1, (int) Math.min(count - at, PAGE))) {
        if (bits != 0) {
          return at;
        }
        at++;
      }
    }
    return count;
  }

  /** Returns the bits of {@code count} elements from {@code first} on, {@code stride} apart. */
  long[] bits(long first, long stride, int count) {
    long[] bits = new long[count];
    int width = dtype.bits();
    long length = (long) count * width / 8;
    if (stride == 1 && width >= 8 && length > PAGE && length <= FilePages.RUN_BYTES) {
      ByteBuffer run =
          FilePages.ofThread().run(0, this, first * width / 8, (int) length);
      decode(run, 0, width, bits, 0, count);
      return bits;
    }
    for (int done = 0; done < count; ) {
      long bit = (first + done * stride) * width;
      ByteBuffer page = page(bit / 8 / PAGE);
      // Only the elements that begin in this page count.
      long left = PAGE * 8 - bit % (PAGE * 8);
      long most = stride == 0 ? count : (left + stride * width - 1) / (stride * width);
      int end = (int) Math.min(count, done + most);
      decode(page, bit % (PAGE * 8), stride * width, bits, done, end);
      done = end;
    }
    return bits;
  }

  /**
   * Decodes elements {@code done} to {@code end}, exclusive, of the array {@code bits} from a
   * buffer. The first begins at bit {@code bit}, and each further one {@code apart} bits after the
   * previous one.
   */
  private void decode(ByteBuffer from, long bit, long apart, long[] bits, int done, int end) {
    long at = bit / 8;
    long step = apart / 8;
    switch (dtype.bits()) {
      case 8 -> {
        for (; done < end; done++, at += step) {
          bits[done] = from.get((int) at) & 0xffL;
        }
      }
      case 16 -> {
        for (; done < end; done++, at += step) {
          bits[done] = from.getShort((int) at) & 0xffffL;
        }
      }
      case 32 -> {
        for (; done < end; done++, at += step) {
          bits[done] = from.getInt((int) at) & 0xffffffffL;
        }
      }
      case 64 -> {
        for (; done < end; done++, at += step) {
          bits[done] = from.getLong((int) at);
        }
      }
      default -> {
        for (; done < end; done++, bit += apart) {
          bits[done] = narrow(from, (int) (bit / 8), (int) (bit % 8), dtype.bits());
        }
      }
    }
  }

  /** Decodes an element of less than a byte. Such elements fill a byte from its lowest bit on. */
  private static long narrow(ByteBuffer page, int at, int shift, int width) {
    int low = page.get(at) & 0xff;
    int high = shift + width > 8 ? page.get(at + 1) & 0xff : 0;
    return (low | high << 8) >> shift & ((1 << width) - 1);
  }

  /**
   * Compares {@code count} elements from {@code first} on with those of {@code other} from {@code
   * otherFirst} on.
   *
   * @return the number of equal elements before the first that differs, {@code count} if none does
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

  /** Returns how many bytes are equal before the first difference, at most {@code count}. */
  private long sameBytes(long first, StoredTensor other, long otherFirst, long count) {
    FilePages memory = FilePages.ofThread();
    return count > PAGE
        ? sameRuns(memory, first, other, otherFirst, count)
        : samePages(memory, first, other, otherFirst, count);
  }

  private long sameRuns(
      FilePages memory, long first, StoredTensor other, long otherFirst, long count) {
    for (long done = 0; done < count; done += FilePages.RUN_BYTES) {
      int length = (int) Math.min(count - done, FilePages.RUN_BYTES);
      ByteBuffer own = memory.run(0, this, first + done, length);
      int differs = own.mismatch(memory.run(1, other, otherFirst + done, length));
      if (differs >= 0) {
        return done + differs;
      }
    }
    return count;
  }

  private long samePages(
      FilePages memory, long first, StoredTensor other, long otherFirst, long count) {
    byte[] own = new byte[(int) count];
    for (long done = 0; done < count; ) {
      long at = first + done;
      long otherAt = otherFirst + done;
      long length = Math.min(count - done, PAGE - Math.max(at % PAGE, otherAt % PAGE));
      // Both pages may use the same slot.
      memory.get(this, at / PAGE).get((int) (at % PAGE), own, 0, (int) length);
      int differs =
          memory
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
