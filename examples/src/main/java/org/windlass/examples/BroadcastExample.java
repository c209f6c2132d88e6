// SPDX-License-Identifier: Apache-2.0
package org.windlass.examples;

import java.io.PrintStream;
import org.windlass.DType;
import org.windlass.LocalGroup;

/** Shows a broadcast: all ranks receive the root's data. Each rank is the root once. */
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
            for (int root = 0; root < ranks; root++) {
              int from = root;
              if (comm.rank() == root) {
                Golden.fill(buffer, i -> value(from, i));
              }

              comm.broadcast(buffer, root);

              Golden.check(buffer, i -> value(from, i));
            }
          }
        });
    out.printf(
        "broadcast: %d roots to %d ranks, %d values each equal the golden ones%n",
        ranks, ranks, COUNT);
  }

  private static float value(int root, int i) {
    return root + i / 16f;
  }
}
