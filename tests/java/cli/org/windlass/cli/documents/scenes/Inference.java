// SPDX-License-Identifier: Apache-2.0
package org.windlass.cli.documents.scenes;

import static org.assertj.core.api.Assertions.assertThat;

import org.windlass.DType;
import org.windlass.Tensor;
import org.windlass.layout.DeviceMesh;

/** A process of a job of four ranks that receives from {@link Trainer}. */
public abstract class Inference extends Scene implements Launched {
  /** What weights are swapped into. */
  protected final class Engine {
    public void swap(Tensor weights, long version) {
      assertThat(weights.shape()).containsExactly(128, 16);
      assertThat(weights.getDouble(127, 15)).isEqualTo(version);
      last = version;
    }
  }

  protected final long[] qShape = Trainer.SHAPE.clone();
  protected final DeviceMesh tp = DeviceMesh.of(4);
  protected final Tensor qkv = Tensor.allocate(DType.F32, 384, 16);
  protected final Engine engine = new Engine();
  private long last;

  @Override
  public final void play() throws Exception {
    fragment();
    assertThat(last).isEqualTo(Trainer.VERSIONS);
    System.out.println("swapped in every version");
  }
}
