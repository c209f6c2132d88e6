// SPDX-License-Identifier: Apache-2.0
package org.windlass.cli.documents.scenes;

import static org.assertj.core.api.Assertions.assertThat;

import java.util.OptionalLong;
import org.windlass.DType;
import org.windlass.Tensor;
import org.windlass.layout.DeviceMesh;

/** A process of a job of four ranks that receives from {@link Trainer}. */
public abstract class Inference extends Scene implements Launched {
  /** What weights are swapped into, which serves until it has the last version. */
  protected final class Engine {
    public void swap(Tensor weights, OptionalLong version) {
      assertThat(weights.shape()).containsExactly(128, 16);
      assertThat(weights.getDouble(127, 15)).isEqualTo(version.getAsLong());
      serving = version.getAsLong() < Trainer.VERSIONS;
    }
  }

  protected final long[] qShape = Trainer.SHAPE.clone();
  protected final DeviceMesh tp = DeviceMesh.of(4);
  protected final Tensor qkv = Tensor.allocate(DType.F32, 384, 16);
  protected final Engine engine = new Engine();
  protected boolean serving = true;

  @Override
  public final void play() throws Exception {
    fragment();
    assertThat(serving).isFalse();
    System.out.println("swapped in every version");
  }
}
