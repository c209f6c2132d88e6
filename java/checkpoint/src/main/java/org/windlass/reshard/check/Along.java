// SPDX-License-Identifier: Apache-2.0
package org.windlass.reshard.check;

import org.jspecify.annotations.Nullable;

/**
 * Pairs a dimension of a quantized weight with the dimension of its scales that runs along it.
 *
 * @param weight index of the weight's dimension, as it is stored
 * @param scale index of the scales' dimension
 * @param block smallest number of stored elements along the weight's dimension that share a whole
 *     number of scales
 * @param count number of scales of these elements; more than 1 only if numbers are packed into
 *     words
 * @param isUsual whether known formats have such blocks
 */
record Along(int weight, int scale, long block, long count, boolean isUsual) {
  Span scales(Span elements) {
    return new Span(
        elements.start() / block * count, (elements.end() + block - 1) / block * count);
  }

  Along at(int weight, int scale) {
    return new Along(weight, scale, block, count, isUsual);
  }

  /** Returns the pair for a weight that packs {@code elements} numbers into {@code words} words. */
  Along packed(long words, long elements) {
    long common = gcd(block * words, count * elements);
    return new Along(
        weight, scale, block * words / common, count * elements / common, isUsual);
  }

  String shown() {
    return "a block of " + block + " that has " + (count == 1 ? "one scale" : count + " of them");
  }

  /**
   * Returns whether {@code numbers} numbers fill {@code words} words of 32 bits exactly. For this,
   * either each word must hold the same count of numbers, or each number must have the same count
   * of bits.
   */
  static boolean isPacked(long words, long numbers) {
    return words > 0 && words <= numbers && (numbers % words == 0 || words * 32 % numbers == 0);
  }

  /**
   * Returns how {@code scales} scales are distributed along the {@code elements} elements of
   * dimension {@code d}. Returns null if the counts do not fit.
   *
   * @param usual the block size of most tensors of the checkpoint. A dimension with only one scale
   *     counts as a part of one block of this size
   * @param isInWords whether a word holds several elements, so that a block may end inside a word
   */
  static @Nullable Along of(int d, long elements, long scales, long usual, boolean isInWords) {
    if (scales == 0 || elements == 0) {
      return null;
    }
    if (scales == 1) {
      return new Along(d, d, Math.max(usual, elements), 1, true);
    }
    // In all known formats a block's extent is a power of two, or, in packed words, 3, 5 or 7 times
    // a power of two. For example, 32 numbers of 3 bits fill 3 words.
    long common = gcd(elements, scales);
    long block = elements / common;
    long count = scales / common;
    if (scales > elements) {
      boolean fits = block == 1 || block < 8 && Long.bitCount(count) == 1;
      return fits ? new Along(d, d, block, count, true) : null;
    }
    long least = (elements + scales - 1) / scales;
    long most = (elements + scales - 2) / (scales - 1) - 1;
    long power = Long.highestOneBit(most);
    if (power >= least) {
      return new Along(d, d, power, 1, true);
    }
    if (count == 1 || count < 8 && Long.bitCount(block) == 1) {
      return new Along(d, d, block, count, count > 1);
    }
    // If several block sizes are possible, only a block of the whole dimension is right for all of
    // them.
    boolean isSure = least == most && !isInWords;
    return least > most ? null : new Along(d, d, isSure ? least : elements, 1, false);
  }

  private static long gcd(long a, long b) {
    return b == 0 ? a : gcd(b, a % b);
  }
}
