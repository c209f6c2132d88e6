// SPDX-License-Identifier: Apache-2.0
package org.windlass.examples;

import java.io.PrintStream;
import org.windlass.DType;
import org.windlass.LocalGroup;
import org.windlass.VerificationFailedException;

/** Broadcast: what the root has, all ranks have. Every rank is the root once. */
public final class BroadcastExample {
  private static final int COUNT = 10_000;

  private BroadcastExample() {}

  public static void main(String[] args) {
    Examples.main(BroadcastExample::run, args);
  }

  static void run(LocalGroup group, int ranks, PrintStream out) {
    group.run(
        comm -> {
          try (var window = comm.window(COUNT * (long) Float.BYTES)) {
            var buffer = window.tensor(DType.F32, COUNT);
            float[] values = new float[COUNT];
            for (int root = 0; root < ranks; root++) {
              if (comm.rank() == root) {
                for (int i = 0; i < COUNT; i++) {
                  values[i] = golden(root, i);
                }
                buffer.copyFrom(values);
              }

              comm.broadcast(buffer, root);

              buffer.copyTo(values);
              for (int i = 0; i < COUNT; i++) {
                check(values[i], golden(root, i));
              }
            }
          }
        });
    out.printf(
        "broadcast: %d roots to %d ranks, %d values each equal the golden ones%n",
        ranks, ranks, COUNT);
  }

  private static float golden(int root, int i) {
    return root + i / 16f;
  }

  private static void check(float found, float expected) {
    if (found != expected) {
      throw new VerificationFailedException("expected " + expected + ", found " + found);
    }
  }
}
