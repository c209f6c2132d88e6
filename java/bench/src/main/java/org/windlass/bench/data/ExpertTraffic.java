// SPDX-License-Identifier: Apache-2.0
package org.windlass.bench.data;

import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.util.Random;
import java.util.stream.IntStream;
import org.windlass.DType;
import org.windlass.Tensor;
import org.windlass.error.InvalidArgumentException;
import org.windlass.error.VerificationFailedException;

/**
 * Generates the tokens of a mixture of experts. Each rank has the same number of tokens. Each token
 * goes to {@code topK} random experts, which are the same in every run. Experts return tokens
 * unchanged, and each copy of a token has the weight 1/8. So a combine returns every token
 * multiplied by {@code topK / 8}, which is exact.
 *
 * @param tokens number of tokens of each rank
 * @param hidden number of elements of a token
 * @param topK number of experts of each token
 * @param experts number of experts of all ranks
 */
public record ExpertTraffic(
    int ranks, int tokens, int hidden, int topK, int experts, DType dtype) {
  public static final float WEIGHT = 0.125f;

  /**
   * The elements of a token repeat this number of different values, which are multiples of 8.
   */
  private static final int VALUES = 8;

  private static final int SEED = 20261125;

  public ExpertTraffic {
    if (dtype != DType.BF16 && dtype != DType.F16 && dtype != DType.F32) {
      throw new InvalidArgumentException(
          "--dtype " + dtype + ": dispatch-combine moves bf16, f16 or f32");
    }
    if (tokens < 1 || hidden < 1 || topK < 1 || experts < topK || experts % ranks != 0) {
      throw new InvalidArgumentException(
          "dispatch-combine: --tokens " + tokens + ", --hidden " + hidden + " and --top-k " + topK
              + " are 1 or more, and there are no fewer experts than --top-k, as many on each of "
              + ranks + " ranks, of " + experts);
    }
    Buffers.requireAddressable("--tokens", (long) ranks * tokens * topK * hidden * dtype.bytes());
  }

  /** Returns the bytes of one rank's tokens. */
  public long tokenBytes() {
    return (long) tokens * hidden * dtype.bytes();
  }

  public int slots() {
    return tokens * topK;
  }

  /**
   * Returns the experts of a rank's tokens, [tokens, topK]. The experts of a token are all
   * different.
   */
  public int[] ids(int rank) {
    Random random = new Random(SEED + rank);
    int[] ids = new int[slots()];
    int[] deck = IntStream.range(0, experts).toArray();
    for (int token = 0; token < tokens; token++) {
      for (int slot = 0; slot < topK; slot++) {
        int drawn = slot + random.nextInt(experts - slot);
        int expert = deck[drawn];
        deck[drawn] = deck[slot];
        deck[slot] = expert;
        ids[token * topK + slot] = expert;
      }
    }
    return ids;
  }

  /** Returns the experts of all ranks' tokens, of shape [ranks, tokens, topK]. */
  public int[] idsOfAll() {
    return IntStream.range(0, ranks).flatMap(rank -> IntStream.of(ids(rank))).toArray();
  }

  /** Writes and checks the tokens of one rank. Allocates nothing after construction. */
  public final class Tokens {
    private final int rank;
    private final ByteBuffer memory;

    /**
     * Bytes of the repeated values, long enough for a token that starts at any of the first {@link
     * #VALUES} elements. The expected sums are repeated in the same way.
     */
    private final byte[] values;

    private final byte[] sums;

    public Tokens(int rank, Tensor tokens) {
      this.rank = rank;
      this.memory = tokens.asByteBuffer();
      this.values = elements(1);
      this.sums = elements(WEIGHT * topK);
    }

    private byte[] elements(float factor) {
      float[] numbers = new float[hidden + VALUES];
      for (int i = 0; i < numbers.length; i++) {
        numbers[i] = 8 * (1 + i % VALUES) * factor;
      }
      byte[] bytes = new byte[numbers.length * dtype.bytes()];
      try (Tensor tensor = Tensor.allocate(dtype, numbers.length)) {
        tensor.copyFrom(numbers);
        tensor.asByteBuffer().get(bytes);
      }
      return bytes;
    }

    private int first(int token, long iteration) {
      return (int) ((token * 5L + rank * 3L + iteration) % VALUES * dtype.bytes());
    }

    public void rewrite(long iteration) {
      int bytes = hidden * dtype.bytes();
      for (int token = 0; token < tokens; token++) {
        memory.put(token * bytes, values, first(token, iteration), bytes);
      }
    }

    public void verify(Tensor found, long iteration) {
      int bytes = hidden * dtype.bytes();
      ByteBuffer all = found.asByteBuffer();
      ByteBuffer expected = ByteBuffer.wrap(sums).order(ByteOrder.nativeOrder());
      for (int token = 0; token < tokens; token++) {
        int at =
            all.slice(token * bytes, bytes)
                .mismatch(expected.slice(first(token, iteration), bytes));
        if (at >= 0) {
          throw new VerificationFailedException(
              "dispatch-combine: element " + at / dtype.bytes() + " of token " + token
                  + " of rank " + rank + " is not what iteration " + iteration + " gives");
        }
      }
    }
  }
}
