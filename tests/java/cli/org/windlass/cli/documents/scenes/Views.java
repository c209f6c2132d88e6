// SPDX-License-Identifier: Apache-2.0
package org.windlass.cli.documents.scenes;

import static org.assertj.core.api.Assertions.assertThat;
import static org.windlass.layout.Placement.replicate;
import static org.windlass.layout.Placement.shard;

import org.windlass.Communicator;
import org.windlass.DType;
import org.windlass.Tensor;
import org.windlass.layout.DeviceMesh;
import org.windlass.layout.Layout;
import org.windlass.transfer.TransferBuilder;

/** Two ranks that have q cut by rows, and get it whole into a fused qkv of two groups of heads. */
public abstract class Views extends Scene {
  protected static final int HEAD = 32;
  protected static final int HIDDEN = 64;
  protected static final int QUERIES = 2;

  protected final long heads = 4;
  protected final long groups = 2;
  protected final Layout from = DeviceMesh.of(2).layout(shard(0));
  protected final Layout to = DeviceMesh.of(2).layout(replicate());
  protected final Tensor q = Tensor.allocate(DType.BF16, 64, HIDDEN);
  protected final Tensor qkv = Tensor.allocate(DType.BF16, 256, HIDDEN);
  protected Communicator comm;
  protected TransferBuilder builder;

  @Override
  public final void play() throws Exception {
    onRanks(
        2,
        Views.class,
        (own, comm) -> {
          own.comm = comm;
          own.builder = TransferBuilder.of(comm);
          own.q.fill(comm.rank() + 1);
          own.fragment();
          try (var transfer = own.builder.register()) {
            transfer.run();
          }
          assertThat(own.qkv.getDouble(63, 0)).isEqualTo(1);
          assertThat(own.qkv.getDouble(127, HIDDEN - 1)).isEqualTo(2);
          assertThat(own.qkv.getDouble(128, 0)).isZero();
          own.second();
          comm.barrier();
        });
  }
}
