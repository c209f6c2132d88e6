// SPDX-License-Identifier: Apache-2.0
package org.windlass.cli.demo;

import org.windlass.Tensor;
import org.windlass.error.VerificationFailedException;
import org.windlass.layout.Placement;

/**
 * Computes the values of the demo's weights. A value depends on the tensor, the term and the
 * element. The trainer's ranks write the values, and the inference ranks compute them again for the
 * check. The check does not depend on plans, transfers or kernels.
 */
final class Values {
  private static final int BLOCK = 1 << 18;

  private Values() {}

  /** Returns a number in [-0.5, 0.5) with all 24 bits of a float, so that each cast rounds. */
  static float value(int tensor, int term, long element) {
    long z = element * 0x9E3779B97F4A7C15L + (2L * tensor + term) * 0xD1B54A32D192ED03L;
    z = (z ^ z >>> 32) * 0xBF58476D1CE4E5B9L;
    return ((int) (z >>> 40) - (1 << 23)) * 0x1p-24f;
  }

  /** Returns the bf16 bits of an element: the sum of the trainer's terms, rounded once. */
  static short expected(Weight weight, long element) {
    return expected(weight.index(), weight.from().hasPartial(), element);
  }

  private static short expected(int tensor, boolean hasTwoTerms, long element) {
    float sum = value(tensor, 0, element);
    if (hasTwoTerms) {
      sum += value(tensor, 1, element);
    }
    int bits = Float.floatToRawIntBits(sum);
    // Round to nearest, ties to even. No value here is a NaN or near infinity.
    return (short) (bits + 0x7fff + (bits >>> 16 & 1) >>> 16);
  }

  static void fill(Weight weight, int rank, Tensor piece) {
    int[] coordinates = {rank / 4, rank % 4};
    int term = weight.from().hasPartial() ? coordinates[0] : 0;
    boolean everyRank = weight.from().placements().get(0) instanceof Placement.Shard;
    Part part =
        Part.of(
            weight,
            weight.from().placements().get(1),
            everyRank ? rank : coordinates[1],
            everyRank ? Model.TRAINER_RANKS : 4);
    Tensor flat = piece.reshape(piece.numel());
    for (long at = 0; at < piece.numel(); at += BLOCK) {
      int count = (int) Math.min(BLOCK, piece.numel() - at);
      float[] values = new float[count];
      part.forEachRun(
          at,
          count,
          (from, length, element) -> {
            for (int i = 0; i < length; i++) {
              values[from + i] = value(weight.index(), term, element + i);
            }
          });
      flat.narrow(0, at, count).copyFrom(values);
    }
  }

  /**
   * Throws unless each element of an inference rank's part is right. Returns the number of checked
   * bytes.
   *
   * @param place number of the rank among the inference ranks
   * @param view the rank's part of the weight
   */
  static long check(Weight weight, int place, Tensor view) {
    Part part =
        Part.of(weight, weight.to().placements().get(0), place, Model.INFERENCE_RANKS);
    boolean hasTwoTerms = weight.from().hasPartial();
    Tensor flat = view.reshape(view.numel());
    for (long at = 0; at < view.numel(); at += BLOCK) {
      int count = (int) Math.min(BLOCK, view.numel() - at);
      short[] values = new short[count];
      flat.narrow(0, at, count).copyTo(values);
      part.forEachRun(
          at,
          count,
          (from, length, element) -> {
            for (int i = 0; i < length; i++) {
              if (values[from + i] != expected(weight.index(), hasTwoTerms, element + i)) {
                throw wrong(weight, place, element + i, values[from + i]);
              }
            }
          });
    }
    return 2 * view.numel();
  }

  private static VerificationFailedException wrong(
      Weight weight, int place, long element, short value) {
    return new VerificationFailedException(
        String.format(
            "tensor \"%s\": element %d on inference rank %d is 0x%04x, expected 0x%04x",
            weight.name(),
            element,
            Model.TRAINER_RANKS + place,
            value & 0xffff,
            expected(weight, element) & 0xffff));
  }

  /**
   * Receives a run of consecutive elements: the index in a block, the number of elements, and the
   * global index.
   */
  private interface Run {
    void take(int from, int length, long element);
  }

  /** Part of a tensor: ranges of {@code width} elements that begin {@code stride} apart. */
  private record Part(long first, long width, long stride) {
    static Part of(Weight weight, Placement placement, int place, int places) {
      long rows = weight.shape()[0];
      long columns = weight.shape().length == 1 ? 1 : weight.shape()[1];
      if (!(placement instanceof Placement.Shard shard)) {
        return new Part(0, rows * columns, rows * columns);
      }
      return shard.dim() == 0
          ? new Part(place * (rows / places) * columns, rows * columns, rows * columns)
          : new Part(place * (columns / places), columns / places, columns);
    }

    /**
     * Splits elements {@code at} to {@code at + count} into ranges that are consecutive in the
     * tensor.
     */
    void forEachRun(long at, int count, Run run) {
      for (int from = 0; from < count; ) {
        long column = (at + from) % width;
        int length = (int) Math.min(count - from, width - column);
        run.take(from, length, first + (at + from) / width * stride + column);
        from += length;
      }
    }
  }
}
