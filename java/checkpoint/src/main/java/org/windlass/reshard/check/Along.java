// SPDX-License-Identifier: Apache-2.0
package org.windlass.reshard.check;

/**
 * A dimension of a weight and the one of its scales that goes along it.
 *
 * @param weight the dimension as it is stored
 * @param scale that of the scales
 * @param block the fewest elements that go with a whole number of scales, where one or both are
 *     words that numbers are packed in
 * @param count that number; 1 of numbers that are not packed
 * @param isUsual whether formats have such blocks
 */
record Along(int weight, int scale, long block, long count, boolean isUsual) {
  /** The scales of some elements. */
  Span scales(Span elements) {
    return new Span(
        elements.start() / block * count, (elements.end() + block - 1) / block * count);
  }

  Along at(int weight, int scale) {
    return new Along(weight, scale, block, count, isUsual);
  }

  /** The same where the elements are packed: {@code words} have as many as {@code elements}. */
  Along packed(long words, long elements) {
    long common = gcd(block * words, count * elements);
    return new Along(
        weight, scale, block * words / common, count * elements / common, isUsual);
  }

  /** The block and its scales, in a complaint. */
  String shown() {
    return "a block of " + block + " that has " + (count == 1 ? "one scale" : count + " of them");
  }

  /** Whether words are full of as many numbers: of some, or 32 words of one bit of each. */
  static boolean isPacked(long words, long numbers) {
    return words > 0 && words <= numbers && (numbers % words == 0 || words * 32 % numbers == 0);
  }

  /**
   * Returns how {@code scales} lie along {@code elements} of dimension {@code d}; null if they do
   * not.
   *
   * @param usual the block of others, of which a smaller dimension is a part
   * @param isInWords whether several elements are in one, so that a block may end inside one
   */
  static Along of(int d, long elements, long scales, long usual, boolean isInWords) {
    if (scales == 0 || elements == 0) {
      return null;
    }
    if (scales == 1) {
      return new Along(d, d, Math.max(usual, elements), 1, true);
    }
    // In all formats that are known a block's extent is a power of two, or 3, 5 or 7 times that in
    // words: 32 numbers of 3 bits fill 3 words.
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
    // Only the whole is right for all blocks that it may be.
    boolean isSure = least == most && !isInWords;
    return least > most ? null : new Along(d, d, isSure ? least : elements, 1, false);
  }

  private static long gcd(long a, long b) {
    return b == 0 ? a : gcd(b, a % b);
  }
}
