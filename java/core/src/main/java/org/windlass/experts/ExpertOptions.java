// SPDX-License-Identifier: Apache-2.0
package org.windlass.experts;

import java.util.Arrays;
import java.util.Objects;
import org.windlass.Communicator;
import org.windlass.DType;
import org.windlass.error.InvalidArgumentException;
import org.windlass.internal.Deadline;
import org.windlass.internal.Native;
import org.windlass.internal.call.Gathered;

/**
 * The options of an {@link ExpertParallel}, which are the same on all ranks. Start from {@link
 * #of}, and change single options with the {@code with} methods. A row is the copy of a token that
 * one expert receives.
 *
 * @param experts number of experts of all ranks. Rank {@code r} of {@code n} has {@code experts /
 *     n} of them, from {@code r * experts / n} on.
 * @param topK largest number of experts of a token: 1 to 64, and no more than {@code experts}
 * @param hidden number of elements of a token
 * @param tokens largest number of tokens that a rank passes to a dispatch
 * @param dtype dtype of tokens: f64, f32, f16, bf16, f8e5m2 or f8e4m3
 * @param rows number of rows that a rank has room for. 0 means room for every choice that the
 *     routers can make: {@code n * tokens} rows for each of a token's experts that can be local,
 *     plus the rows for alignment.
 * @param alignment the index of each expert's first row is a multiple of this number
 * @param quantised whether tokens of f32, f16 or bf16 are sent as f8e4m3. Each 128 elements then
 *     have a scale in f32: {@code s = max(largest magnitude, 1e-4) / 448}. An element becomes
 *     {@code q = element * (1 / s)}, rounded to nearest even.
 */
public record ExpertOptions(
    int experts,
    int topK,
    long hidden,
    long tokens,
    DType dtype,
    long rows,
    int alignment,
    boolean quantised) {
  private static final int MOST_EXPERTS = 1 << 20;
  private static final long MOST_HIDDEN = 1 << 24;
  private static final long MOST_TOKENS = 1 << 22;

  /**
   * Creates options. {@link ExpertParallel#open} makes the checks that need a communicator.
   *
   * @throws InvalidArgumentException if a number is out of range
   */
  public ExpertOptions {
    Objects.requireNonNull(dtype, "dtype");
    require(1, experts, MOST_EXPERTS, "experts");
    require(1, topK, Math.min(experts, Native.WL_MAX_TOP_K), "topK");
    require(1, hidden, MOST_HIDDEN, "hidden");
    require(1, tokens, MOST_TOKENS, "tokens");
    require(0, rows, Integer.MAX_VALUE, "rows");
    require(1, alignment, MOST_EXPERTS, "alignment");
  }

  /**
   * Returns options with room for all rows that can arrive, alignment 1, and tokens that are not
   * quantised.
   *
   * @param experts number of experts of all ranks, a multiple of the number of ranks
   * @param topK largest number of experts of a token: 1 to 64, and no more than {@code experts}
   * @param hidden number of elements of a token
   * @param tokens largest number of tokens that a rank passes to a dispatch
   * @param dtype dtype of tokens: f64, f32, f16, bf16, f8e5m2 or f8e4m3
   * @throws InvalidArgumentException if a number is out of range
   */
  public static ExpertOptions of(int experts, int topK, long hidden, long tokens, DType dtype) {
    return new ExpertOptions(experts, topK, hidden, tokens, dtype, 0, 1, false);
  }

  /**
   * Returns these options with room for another number of rows. 0 means room for all rows that can
   * arrive.
   */
  public ExpertOptions withRows(long rows) {
    return new ExpertOptions(experts, topK, hidden, tokens, dtype, rows, alignment, quantised);
  }

  /** Returns these options with another {@code alignment} of each expert's first row. */
  public ExpertOptions withAlignment(int alignment) {
    return new ExpertOptions(experts, topK, hidden, tokens, dtype, rows, alignment, quantised);
  }

  /** Returns these options with another value of {@code quantised}. */
  public ExpertOptions withQuantised(boolean quantised) {
    return new ExpertOptions(experts, topK, hidden, tokens, dtype, rows, alignment, quantised);
  }

  long mostRows(int ranks) {
    long own = experts / ranks;
    return tokens * ranks * Math.min(topK, own) + own * (alignment - 1L);
  }

  /**
   * Throws InvalidArgumentException on all ranks, if a rank's options differ from rank 0's. The
   * call is collective.
   */
  void requireSame(Communicator communicator) {
    long[] own = {
      experts, topK, hidden, tokens, dtype.ordinal(), rows, alignment, quantised ? 1 : 0
    };
    long[][] all =
        Gathered.words(communicator, () -> Deadline.DEFAULT, Native.WL_OP_EXPERTS_OPEN, own);
    for (int rank = 1; rank < all.length; rank++) {
      int option = Arrays.mismatch(all[rank], all[0]);
      if (option >= 0) {
        throw new InvalidArgumentException(
            "experts: rank " + rank + " has " + text(option, all[rank][option]) + ", rank 0 has "
                + text(option, all[0][option]) + "; open them with the same options on all ranks");
      }
    }
  }

  private static String text(int option, long value) {
    String name = ExpertOptions.class.getRecordComponents()[option].getName();
    return switch (name) {
      case "dtype" -> "dtype " + DType.values()[(int) value];
      case "quantised" -> value == 1 ? "quantised tokens" : "tokens as they are";
      default -> name + " " + value;
    };
  }

  private static void require(long least, long value, long most, String name) {
    if (value < least || value > most) {
      throw new InvalidArgumentException(
          "experts: " + name + " is " + value + "; it must lie in [" + least + ", " + most + "]");
    }
  }
}
