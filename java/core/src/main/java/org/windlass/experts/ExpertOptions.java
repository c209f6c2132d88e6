// SPDX-License-Identifier: Apache-2.0
package org.windlass.experts;

import java.util.Objects;
import org.windlass.DType;
import org.windlass.error.InvalidArgumentException;
import org.windlass.internal.Native;

/**
 * What all ranks of an {@link ExpertParallel} have alike. Start from {@link #of} and change what
 * differs.
 *
 * @param experts of all ranks, as many of each: rank {@code r} of {@code n} has {@code experts / n},
 *     from {@code r * experts / n} on
 * @param topK experts of a token, at most: 1 to 64
 * @param hidden elements of a token
 * @param tokens that a rank brings to a dispatch, at most
 * @param dtype of tokens: f64, f32, f16, bf16, f8e5m2 or f8e4m3
 * @param rows that a rank has room for; 0 means as many as can come to it, whatever the routers
 *     choose: {@code n * tokens} times what a token may have of its experts, and what alignment adds
 * @param alignment an expert's rows begin at a multiple of it
 * @param quantised whether tokens, of f32, f16 or bf16, go as f8e4m3 with a scale in f32 for each 128
 *     elements: {@code s = max(largest magnitude, 1e-4) / 448}, {@code q = element * (1 / s)}, rounded
 *     to nearest even
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

  /** Checks what needs no communicator; {@link ExpertParallel#open} checks the rest. */
  public ExpertOptions {
    Objects.requireNonNull(dtype, "dtype");
    require(1, experts, MOST_EXPERTS, "experts");
    require(1, topK, Native.WL_MAX_TOP_K, "topK");
    require(1, hidden, MOST_HIDDEN, "hidden");
    require(1, tokens, MOST_TOKENS, "tokens");
    require(0, rows, Integer.MAX_VALUE, "rows");
    require(1, alignment, MOST_EXPERTS, "alignment");
  }

  /** Room for all that can come, rows side by side, tokens as they are. */
  public static ExpertOptions of(int experts, int topK, long hidden, long tokens, DType dtype) {
    return new ExpertOptions(experts, topK, hidden, tokens, dtype, 0, 1, false);
  }

  /** These options with room for so many rows on each rank; 0: for all that can come. */
  public ExpertOptions withRows(long rows) {
    return new ExpertOptions(experts, topK, hidden, tokens, dtype, rows, alignment, quantised);
  }

  /** These options with another alignment of experts' rows. */
  public ExpertOptions withAlignment(int alignment) {
    return new ExpertOptions(experts, topK, hidden, tokens, dtype, rows, alignment, quantised);
  }

  /** These options with another say over whether tokens are quantised. */
  public ExpertOptions withQuantised(boolean quantised) {
    return new ExpertOptions(experts, topK, hidden, tokens, dtype, rows, alignment, quantised);
  }

  /** The most rows that can come to one of {@code ranks} ranks. */
  long mostRows(int ranks) {
    long own = experts / ranks;
    return tokens * ranks * Math.min(topK, own) + own * (alignment - 1L);
  }

  private static void require(long least, long value, long most, String name) {
    if (value < least || value > most) {
      throw new InvalidArgumentException(
          "experts: " + name + " is " + value + "; it must lie in [" + least + ", " + most + "]");
    }
  }
}
