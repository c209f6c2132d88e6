// SPDX-License-Identifier: Apache-2.0
package org.windlass.cli.documents.scenes;

import static org.assertj.core.api.Assertions.assertThat;

import org.windlass.DType;
import org.windlass.DistributedTensor;
import org.windlass.Signals;
import org.windlass.Tensor;
import org.windlass.Window;

/** Rank 1 of three, to which rank 0 puts a row, and which puts one to rank 2. */
public abstract class Puts extends Scene {
  protected Window window;
  protected Signals signals;
  protected DistributedTensor inbox;
  protected Tensor row;
  protected int peer;
  protected int sent;
  protected int received;

  @Override
  public final void play() throws Exception {
    onRanks(
        3,
        Puts.class,
        (own, comm) -> {
          try (Window window = comm.window(1 << 16)) {
            own.window = window;
            own.inbox = window.tensor(DType.F32, 8);
            own.signals = window.signals(1);
            own.row = Tensor.allocate(DType.F32, 8);
            own.row.fill(10 + comm.rank());
            own.peer = 2;
            comm.barrier();
            own.playRank(comm.rank());
            comm.barrier();
          }
        });
  }

  private void playRank(int rank) throws Exception {
    switch (rank) {
      case 0 -> {
        window.put(row, 1, inbox);
        signals.notify(1, 0, 1);
      }
      case 1 -> {
        fragment();
        assertThat(inbox.getDouble(7)).isEqualTo(10);
      }
      default -> {
        signals.await(1, 0, 1);
        assertThat(inbox.getDouble(7)).isEqualTo(11);
      }
    }
  }
}
