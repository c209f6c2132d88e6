// SPDX-License-Identifier: Apache-2.0
package org.windlass.consumer;

import org.windlass.Communicator;
import org.windlass.DType;
import org.windlass.LocalGroup;
import org.windlass.Tensor;
import org.windlass.layout.Layout;
import org.windlass.plan.TransferMode;
import org.windlass.transfer.TransferBuilder;

/** Four ranks exchange rows, and make columns of rows; each checks what it got. */
public final class Exchange {
  private Exchange() {}

  public static void main(String[] arguments) {
    int ranks = 4;
    try (var group = LocalGroup.of(ranks)) {
      group.run(
          comm -> {
            try (var window = comm.window(1L << 20)) {
              var in = window.tensor(DType.F32, ranks, 1024);
              var out = window.tensor(DType.F32, ranks, 1024);
              in.fill(comm.rank() + 0.5);
              comm.allToAll(in, out);
              for (int peer = 0; peer < ranks; peer++) {
                for (int i : new int[] {0, 511, 1023}) {
                  if (out.getDouble(peer, i) != peer + 0.5) {
                    throw new AssertionError(
                        "rank " + comm.rank() + " got " + out.getDouble(peer, i) + " from " + peer);
                  }
                }
              }
            }
            redistribute(comm);
          });
    }
    System.out.println("exchanged");
  }

  private static void redistribute(Communicator comm) {
    long[] shape = {8, 8};
    Layout rows = Layout.parse("4:S0");
    Layout columns = Layout.parse("4@0:S1");
    try (Tensor row = Tensor.allocate(DType.F32, 2, 8);
        Tensor column = Tensor.allocate(DType.F32, 8, 2);
        var transfer =
            TransferBuilder.of(comm)
                .defaultMode(TransferMode.STAGED)
                .add("w", shape, DType.F32, rows, row.fill(comm.rank()), columns, column)
                .register()) {
      transfer.run();
      for (int i = 0; i < 8; i++) {
        if (column.getDouble(i, 1) != i / 2) {
          throw new AssertionError(
              "rank " + comm.rank() + " got " + column.getDouble(i, 1) + " in row " + i);
        }
      }
    }
  }
}
