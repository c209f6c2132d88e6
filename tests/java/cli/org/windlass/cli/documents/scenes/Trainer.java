// SPDX-License-Identifier: Apache-2.0
package org.windlass.cli.documents.scenes;

import org.windlass.DType;
import org.windlass.Tensor;
import org.windlass.layout.DeviceMesh;

/** A process of a job of two ranks that sends three versions to {@link Inference}. */
public abstract class Trainer extends Scene implements Launched {
  /** What both jobs say of the tensor. */
  static final long[] SHAPE = {512, 16};

  static final int VERSIONS = 3;

  protected final long[] qShape = SHAPE.clone();
  protected final DeviceMesh dp = DeviceMesh.of(2);
  protected final Tensor q = Tensor.allocate(DType.F32, SHAPE);
  private int version;

  protected final boolean train() {
    q.fill(++version);
    return version <= VERSIONS;
  }

  @Override
  public final void play() throws Exception {
    fragment();
  }
}
