// SPDX-License-Identifier: Apache-2.0
package org.windlass.examples;

import java.io.PrintStream;
import org.windlass.DType;
import org.windlass.LocalGroup;
import org.windlass.ReduceOp;

/**
 * Runs a feed-forward layer with tensor parallelism: {@code y = gelu(x * up) * down}. Each rank
 * holds some columns of {@code up} and the matching rows of {@code down}. It computes its term of
 * {@code y} without communication. One all-reduce then adds the terms on every rank.
 */
public final class FeedForwardExample {
  private static final int TOKENS = 16;
  private static final int MODEL = 64;
  private static final int HIDDEN = 192;
  private static final double TOLERANCE = 1e-4;

  private FeedForwardExample() {}

  public static void main(String[] args) {
    Examples.main(FeedForwardExample::run, args);
  }

  static void run(LocalGroup group, int ranks, PrintStream out) {
    double[] golden = serial();
    group.run(
        comm -> {
          int first = HIDDEN * comm.rank() / ranks;
          int end = HIDDEN * (comm.rank() + 1) / ranks;
          try (var window = comm.window((long) TOKENS * MODEL * Float.BYTES)) {
            var y = window.tensor(DType.F32, TOKENS, MODEL);
            y.copyFrom(term(first, end));

            comm.allReduce(y, ReduceOp.SUM);

            Golden.check(y, TOLERANCE, i -> golden[i]);
          }
        });
    out.printf(
        "feed-forward: %d ranks, %d outputs each within %.0e of the golden ones%n",
        ranks, TOKENS * MODEL, TOLERANCE);
  }

  /** Returns the term that hidden features {@code first} to {@code end} add to y, in f32. */
  private static float[] term(int first, int end) {
    // Column parallel: multiply x by this rank's columns of up, and apply the activation.
    float[][] hidden = new float[TOKENS][end - first];
    for (int token = 0; token < TOKENS; token++) {
      for (int feature = first; feature < end; feature++) {
        float sum = 0;
        for (int k = 0; k < MODEL; k++) {
          sum += (float) x(token, k) * (float) up(k, feature);
        }
        hidden[token][feature - first] = (float) gelu(sum);
      }
    }
    // Row parallel: multiply by the matching rows of down.
    float[] y = new float[TOKENS * MODEL];
    for (int i = 0; i < y.length; i++) {
      for (int feature = first; feature < end; feature++) {
        y[i] += hidden[i / MODEL][feature - first] * (float) down(feature, i % MODEL);
      }
    }
    return y;
  }

  /** Computes the whole layer on one rank, in f64. */
  private static double[] serial() {
    double[] y = new double[TOKENS * MODEL];
    for (int token = 0; token < TOKENS; token++) {
      for (int feature = 0; feature < HIDDEN; feature++) {
        double sum = 0;
        for (int k = 0; k < MODEL; k++) {
          sum += x(token, k) * up(k, feature);
        }
        for (int k = 0; k < MODEL; k++) {
          y[token * MODEL + k] += gelu(sum) * down(feature, k);
        }
      }
    }
    return y;
  }

  private static double gelu(double x) {
    return x / 2 * (1 + Math.tanh(Math.sqrt(2 / Math.PI) * (x + 0.044715 * x * x * x)));
  }

  private static double x(int token, int k) {
    return Math.sin(1 + token * MODEL + k);
  }

  private static double up(int k, int feature) {
    return Math.cos(3 * k + 5 * feature) / Math.sqrt(MODEL);
  }

  private static double down(int feature, int k) {
    return Math.sin(7 * feature + 11 * k) / Math.sqrt(HIDDEN);
  }
}
