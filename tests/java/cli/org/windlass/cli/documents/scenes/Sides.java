// SPDX-License-Identifier: Apache-2.0
package org.windlass.cli.documents.scenes;

import static org.assertj.core.api.Assertions.assertThat;

import org.windlass.Communicator;
import org.windlass.DType;
import org.windlass.Tensor;
import org.windlass.layout.DeviceMesh;

/** Four trainers run the first block, and the fleet, two ranks, the second. */
public abstract class Sides extends Scene {
  private static final int VERSIONS = 3;

  protected final DeviceMesh trainers = DeviceMesh.of("dp", 2, "tp", 2);
  protected final DeviceMesh fleet = DeviceMesh.of("tp", 2).at(4);
  protected final long[] qShape = {64, 16};
  protected Communicator comm;
  protected Tensor q;
  private int version;

  /** Each of the two addends of a version is that version. */
  protected final boolean train() {
    q.fill(++version);
    return version <= VERSIONS;
  }

  protected final void serve(Tensor tensor) {
    version++;
    assertThat(tensor.getDouble(31, 15)).isEqualTo(2 * version);
  }

  @Override
  public final void play() throws Exception {
    onRanks(
        6,
        Sides.class,
        (own, comm) -> {
          own.comm = comm;
          if (comm.rank() < 4) {
            own.q = Tensor.allocate(DType.F32, 32, 16);
            own.fragment();
          } else {
            own.q = Tensor.allocate(DType.BF16, 32, 16);
            own.second();
          }
          assertThat(own.version).isEqualTo(comm.rank() < 4 ? VERSIONS + 1 : VERSIONS);
          comm.barrier();
        });
  }
}
