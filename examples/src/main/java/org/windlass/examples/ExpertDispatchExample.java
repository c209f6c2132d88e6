// SPDX-License-Identifier: Apache-2.0
package org.windlass.examples;

import java.io.PrintStream;
import org.windlass.Communicator;
import org.windlass.DType;
import org.windlass.LocalGroup;
import org.windlass.Tensor;
import org.windlass.error.VerificationFailedException;
import org.windlass.experts.ExpertOptions;
import org.windlass.experts.ExpertParallel;
import org.windlass.experts.ExpertRouting;

/**
 * Shows expert dispatch and combine. Every rank holds tokens and some of the experts of a mixture.
 * A router sends each token to up to six experts on any ranks, and the experts process the received
 * rows. Each token gets back one sum of their results, with the router's weights.
 */
public final class ExpertDispatchExample {
  private static final int TOKENS = 128;
  private static final int TOP_K = 6;
  private static final int HIDDEN = 4096;
  private static final int LOCAL_EXPERTS = 16;
  private static final float WEIGHT = 0.125f;

  private ExpertDispatchExample() {}

  public static void main(String[] args) {
    Examples.main(ExpertDispatchExample::run, args);
  }

  static void run(LocalGroup group, int ranks, PrintStream out) {
    group.run(comm -> step(comm, ranks));
    out.printf(
        "expert-dispatch: %d ranks, %d tokens each came back from %d experts as the golden sums%n",
        ranks, TOKENS, ranks * LOCAL_EXPERTS);
  }

  private static void step(Communicator comm, int ranks) {
    ExpertOptions options =
        ExpertOptions.of(ranks * LOCAL_EXPERTS, TOP_K, HIDDEN, TOKENS, DType.BF16);
    try (var experts = ExpertParallel.open(comm, options);
        var routing = experts.routing();
        var tokens = Tensor.allocate(DType.BF16, TOKENS, HIDDEN);
        var ids = Tensor.allocate(DType.I32, TOKENS, TOP_K);
        var weights = Tensor.allocate(DType.F32, TOKENS, TOP_K).fill(WEIGHT)) {
      tokens.copyFrom(features(comm.rank()));
      ids.copyFrom(router(comm.rank(), options.experts()));

      experts.dispatch(routing, tokens, ids, weights);

      work(experts, routing);

      experts.combine(routing, tokens);

      check(comm.rank(), tokens, options.experts());
    }
  }

  /** Runs the experts of a rank: expert e of all multiplies its rows by 1 + e modulo 4. */
  private static void work(ExpertParallel experts, ExpertRouting routing) {
    for (int expert = 0; expert < experts.localExperts(); expert++) {
      Tensor rows = routing.rows(expert);
      float[] values = new float[(int) rows.numel()];
      rows.copyTo(values);
      for (int i = 0; i < values.length; i++) {
        values[i] *= factor(experts.firstExpert() + expert);
      }
      rows.copyFrom(values);
    }
  }

  private static int factor(int expert) {
    return 1 + expert % 4;
  }

  /**
   * Returns the router's choice, of shape [tokens, top-k]. It is uneven, has -1 for none, and no
   * experts for each eighth token.
   */
  private static int[] router(int rank, int experts) {
    int[] ids = new int[TOKENS * TOP_K];
    for (int i = 0; i < ids.length; i++) {
      int token = i / TOP_K;
      int slot = i % TOP_K;
      boolean none = token % 8 == 7 || (slot == 3 && token % 2 == 0);
      ids[i] = none ? -1 : (token * token + rank * 5 + slot * 7) % experts;
    }
    return ids;
  }

  private static float feature(int rank, int token, int column) {
    return 8 * (1 + (rank + token + column) % 4);
  }

  private static float[] features(int rank) {
    float[] features = new float[TOKENS * HIDDEN];
    for (int i = 0; i < features.length; i++) {
      features[i] = feature(rank, i / HIDDEN, i % HIDDEN);
    }
    return features;
  }

  private static void check(int rank, Tensor sums, int experts) {
    int[] ids = router(rank, experts);
    float[] found = new float[TOKENS * HIDDEN];
    sums.copyTo(found);
    for (int token = 0; token < TOKENS; token++) {
      float factors = 0;
      for (int slot = 0; slot < TOP_K; slot++) {
        int expert = ids[token * TOP_K + slot];
        factors += expert < 0 ? 0 : WEIGHT * factor(expert);
      }
      for (int column = 0; column < HIDDEN; column++) {
        float golden = factors * feature(rank, token, column);
        if (found[token * HIDDEN + column] != golden) {
          throw new VerificationFailedException(
              "token " + token + " of rank " + rank + ": expected " + golden + ", found "
                  + found[token * HIDDEN + column]);
        }
      }
    }
  }
}
