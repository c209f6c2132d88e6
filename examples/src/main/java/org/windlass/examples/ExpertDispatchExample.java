// SPDX-License-Identifier: Apache-2.0
package org.windlass.examples;

import java.io.PrintStream;
import org.windlass.DType;
import org.windlass.LocalGroup;
import org.windlass.Tensor;
import org.windlass.VerificationFailedException;

/**
 * Expert dispatch: every rank holds tokens and one expert. A router sends each token to an expert;
 * how many come, an expert learns as they come. It works on them and sends them back.
 */
public final class ExpertDispatchExample {
  private static final int TOKENS = 96;
  private static final int HIDDEN = 64;

  private ExpertDispatchExample() {}

  public static void main(String[] args) {
    Examples.main(ExpertDispatchExample::run, args);
  }

  static void run(LocalGroup group, int ranks, PrintStream out) {
    group.run(
        comm -> {
          long[] sent = new long[ranks];
          int[] order = byExpert(comm.rank(), ranks, sent);
          float[] values = new float[TOKENS * HIDDEN];
          for (int i = 0; i < values.length; i++) {
            values[i] = feature(comm.rank(), order[i / HIDDEN], i % HIDDEN);
          }
          long bytes = (ranks + 2L) * TOKENS * HIDDEN * Float.BYTES;
          try (var window = comm.window(bytes)) {
            var tokens = window.tensor(DType.F32, TOKENS, HIDDEN);
            var arrived = window.tensor(DType.F32, (long) ranks * TOKENS, HIDDEN);
            var returned = window.tensor(DType.F32, TOKENS, HIDDEN);
            tokens.copyFrom(values);

            long[] received = comm.allToAllv(tokens, sent, arrived);

            work(comm.rank(), arrived.narrow(0, 0, sum(received) / HIDDEN));

            comm.allToAllv(arrived, received, returned, sent);

            returned.copyTo(values);
            for (int i = 0; i < values.length; i++) {
              int token = order[i / HIDDEN];
              float expected = feature(comm.rank(), token, i % HIDDEN);
              check(values[i], expected * (1 + expert(comm.rank(), token, ranks)));
            }
          }
        });
    out.printf(
        "expert-dispatch: %d ranks, %d tokens each came back from their experts as the golden"
            + " ones%n",
        ranks, TOKENS);
  }

  /** The router's choice: uneven, and nobody's for the last expert of several. */
  private static int expert(int rank, int token, int ranks) {
    int choice = token * token + 7 * rank;
    return ranks == 1 ? 0 : choice % (ranks - 1);
  }

  /** A rank's tokens in the order of their experts; {@code sent} becomes elements to each. */
  private static int[] byExpert(int rank, int ranks, long[] sent) {
    int[] order = new int[TOKENS];
    int next = 0;
    for (int expert = 0; expert < ranks; expert++) {
      for (int token = 0; token < TOKENS; token++) {
        if (expert(rank, token, ranks) == expert) {
          order[next++] = token;
          sent[expert] += HIDDEN;
        }
      }
    }
    return order;
  }

  private static float feature(int rank, int token, int column) {
    return rank * 512 + token * 4 + column / 16f;
  }

  /** What an expert does to its tokens: multiplies them by one more than its number. */
  private static void work(int expert, Tensor tokens) {
    float[] values = new float[(int) tokens.numel()];
    tokens.copyTo(values);
    for (int i = 0; i < values.length; i++) {
      values[i] *= 1 + expert;
    }
    tokens.copyFrom(values);
  }

  private static long sum(long[] counts) {
    long sum = 0;
    for (long count : counts) {
      sum += count;
    }
    return sum;
  }

  private static void check(float found, float expected) {
    if (found != expected) {
      throw new VerificationFailedException("expected " + expected + ", found " + found);
    }
  }
}
