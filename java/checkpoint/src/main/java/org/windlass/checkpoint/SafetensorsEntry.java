// SPDX-License-Identifier: Apache-2.0
package org.windlass.checkpoint;

import java.util.List;
import java.util.Objects;
import org.windlass.DType;
import org.windlass.error.InvalidArgumentException;
import org.windlass.internal.Copies;
import org.windlass.internal.json.JsonText;

/**
 * Describes one tensor of a safetensors file.
 *
 * @param name the tensor's name, never empty
 * @param dtype the element type
 * @param shape the extents, none negative; empty for a scalar
 * @param begin the offset of the tensor's first byte, in bytes from the end of the header
 * @param end the offset of the first byte after the tensor, in bytes from the end of the header
 */
public record SafetensorsEntry(
    String name, DType dtype, List<Long> shape, long begin, long end) {
  public SafetensorsEntry {
    Objects.requireNonNull(name, "name");
    Objects.requireNonNull(dtype, "dtype");
    shape = Copies.list(shape, "shape");
    if (begin < 0 || end < begin) {
      throw new InvalidArgumentException(
          "tensor " + JsonText.quoted(name) + ": begin is " + begin + " and end " + end
              + "; 0 <= begin <= end must hold");
    }
  }

  /** Returns the size of the tensor in the file, in bytes. */
  public long bytes() {
    return end - begin;
  }

  /** Returns the shape as a new array. */
  public long[] dims() {
    return shape.stream().mapToLong(Long::longValue).toArray();
  }

  /**
   * Returns the size in bytes of a tensor without gaps between its elements.
   *
   * @param where the text with which a message begins
   * @throws InvalidArgumentException if an extent is negative, the size does not fit 63 bits, or a
   *     tensor of elements smaller than a byte does not fill a whole number of bytes
   */
  static long packedBytes(String where, DType dtype, List<Long> shape) {
    for (int d = 0; d < shape.size(); d++) {
      if (shape.get(d) < 0) {
        throw new InvalidArgumentException(
            where + ": shape " + shape + " has the negative extent " + shape.get(d)
                + " in dimension " + d);
      }
    }
    if (shape.contains(0L)) {
      return 0;
    }
    long bits = dtype.bits();
    try {
      for (long extent : shape) {
        bits = Math.multiplyExact(bits, extent);
      }
    } catch (ArithmeticException overflow) {
      throw new InvalidArgumentException(
          where + ": the size of shape " + shape + " as " + dtype.safetensorsName() + " overflows");
    }
    if (bits % 8 != 0) {
      throw new InvalidArgumentException(
          where + ": shape " + shape + " as " + dtype.safetensorsName() + " takes " + bits
              + " bits, which is not a whole number of bytes");
    }
    return bits / 8;
  }
}
