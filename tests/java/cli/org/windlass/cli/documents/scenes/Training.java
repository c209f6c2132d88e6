// SPDX-License-Identifier: Apache-2.0
package org.windlass.cli.documents.scenes;

import static org.assertj.core.api.Assertions.assertThat;

import org.windlass.Communicator;
import org.windlass.DType;
import org.windlass.Tensor;

/** Three ranks that sum gradients while they compute. */
public abstract class Training extends Scene {
  protected Communicator comm;
  protected Tensor gradients;
  private int computed;

  protected final void compute() {
    computed++;
  }

  @Override
  public final void play() throws Exception {
    onRanks(
        3,
        Training.class,
        (own, comm) -> {
          own.comm = comm;
          own.gradients = Tensor.allocate(DType.F32, 1000);
          own.gradients.fill(comm.rank() + 1);
          own.fragment();
          assertThat(own.computed).isEqualTo(1);
          assertThat(own.gradients.getDouble(999)).isEqualTo(6);
          comm.barrier();
        });
  }
}
