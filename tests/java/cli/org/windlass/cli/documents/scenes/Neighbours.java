// SPDX-License-Identifier: Apache-2.0
package org.windlass.cli.documents.scenes;

import static org.assertj.core.api.Assertions.assertThat;

import org.windlass.Communicator;
import org.windlass.DType;
import org.windlass.Tensor;

/** Four ranks in a ring, each of which sends to both neighbours. */
public abstract class Neighbours extends Scene {
  protected Communicator comm;
  protected int next;
  protected int previous;
  protected final Tensor left = Tensor.allocate(DType.F32, 5000);
  protected final Tensor right = Tensor.allocate(DType.F32, 5000);
  protected final Tensor fromLeft = Tensor.allocate(DType.F32, 5000);
  protected final Tensor fromRight = Tensor.allocate(DType.F32, 5000);

  @Override
  public final void play() throws Exception {
    onRanks(
        4,
        Neighbours.class,
        (own, comm) -> {
          own.comm = comm;
          own.next = (comm.rank() + 1) % 4;
          own.previous = (comm.rank() + 3) % 4;
          own.left.fill(10 + comm.rank());
          own.right.fill(20 + comm.rank());
          own.fragment();
          assertThat(own.fromLeft.getDouble(4999)).isEqualTo(20 + own.previous);
          assertThat(own.fromRight.getDouble(4999)).isEqualTo(10 + own.next);
        });
  }
}
