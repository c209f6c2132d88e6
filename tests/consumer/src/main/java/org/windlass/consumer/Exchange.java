// SPDX-License-Identifier: Apache-2.0
package org.windlass.consumer;

import org.windlass.Communicator;
import org.windlass.DType;

/** Four ranks exchange rows; each checks what it got. */
public final class Exchange {
  private Exchange() {}

  public static void main(String[] arguments) {
    int ranks = 4;
    try (var group = Communicator.local(ranks)) {
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
          });
    }
    System.out.println("exchanged");
  }
}
