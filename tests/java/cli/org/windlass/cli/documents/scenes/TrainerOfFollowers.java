// SPDX-License-Identifier: Apache-2.0
package org.windlass.cli.documents.scenes;

import org.windlass.DType;
import org.windlass.Tensor;
import org.windlass.layout.DeviceMesh;
import org.windlass.layout.Layout;
import org.windlass.layout.Placement;

/** A process of a job of two ranks that sends three versions to {@link Serving}. */
public abstract class TrainerOfFollowers extends Scene implements Launched {
  /** Shape that both jobs state. */
  static final long[] SHAPE = {512, 16};

  static final int VERSIONS = 3;

  protected final long[] shape = SHAPE.clone();
  protected final Layout layout = DeviceMesh.of(2).layout(Placement.replicate());
  protected final Tensor q = Tensor.allocate(DType.F32, SHAPE);

  protected final boolean train(long version) {
    q.fill(version);
    return version <= VERSIONS;
  }

  @Override
  public final void play() throws Exception {
    fragment();
  }
}
