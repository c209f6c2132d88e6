// SPDX-License-Identifier: Apache-2.0
package org.windlass.cli.documents.scenes;

import static org.assertj.core.api.Assertions.assertThat;

import org.windlass.DType;
import org.windlass.Tensor;
import org.windlass.layout.DeviceMesh;
import org.windlass.layout.Layout;
import org.windlass.layout.Placement;

/** A process of a job of four ranks that receives from {@link TrainerOfFollowers}. */
public abstract class Serving extends Scene implements Launched {
  protected final long[] shape = TrainerOfFollowers.SHAPE.clone();
  protected final Layout layout = DeviceMesh.of(4).layout(Placement.shard(0));
  protected final Tensor q = Tensor.allocate(DType.F32, 128, 16);
  private long last;

  protected final void serve(Tensor weights, long version) {
    assertThat(weights.getDouble(127, 15)).isEqualTo(version);
    last = version;
  }

  @Override
  public final void play() throws Exception {
    fragment();
    assertThat(last).isEqualTo(TrainerOfFollowers.VERSIONS);
  }
}
