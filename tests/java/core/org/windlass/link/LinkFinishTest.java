// SPDX-License-Identifier: Apache-2.0
package org.windlass.link;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.io.Serializable;
import java.time.Duration;
import java.util.function.UnaryOperator;
import java.util.stream.IntStream;
import org.junit.jupiter.api.Timeout;
import org.windlass.DType;
import org.windlass.Tensor;
import org.windlass.error.AbortedException;
import org.windlass.error.InvalidArgumentException;
import org.windlass.error.WindlassException;
import org.windlass.layout.DeviceMesh;
import org.windlass.layout.Layout;
import org.windlass.layout.Placement;
import org.windlass.testing.OnRanks;
import org.windlass.testing.Ranks;

/** The end of the versions of a link within one communicator: rank 0 sends, the others receive. */
@Timeout(120)
class LinkFinishTest {
  private static final Duration SOON = Duration.ofSeconds(30);
  private static final long[] SHAPE = {1000};

  @OnRanks({2, 3, 4})
  void receiversGetTheEndAsAResult(Ranks ranks) {
    sendTwoAndFinish(ranks, builder -> builder);
  }

  @OnRanks(3)
  void receiversInPlaceGetTheEndAsAResult(Ranks ranks) {
    sendTwoAndFinish(ranks, LinkTransferBuilder::inPlace);
  }

  @OnRanks(3)
  void receiversThatCheckGetTheEndAsAResult(Ranks ranks) {
    sendTwoAndFinish(ranks, LinkTransferBuilder::checksums);
  }

  /** What a rank's builder is told before it has tensors. */
  private interface Options extends UnaryOperator<LinkTransferBuilder>, Serializable {}

  private static void sendTwoAndFinish(Ranks ranks, Options options) {
    ranks.run(
        comm -> {
          Layout from = DeviceMesh.of(1).layout(Placement.replicate());
          int[] others = IntStream.range(1, comm.size()).toArray();
          DeviceMesh receivers = DeviceMesh.of(comm.size() - 1).ranks(others);
          try (Link link = Link.open(comm, "policy", DeviceMesh.of(1), receivers)) {
            Tensor own = Tensor.allocate(DType.F32, SHAPE);
            LinkTransferBuilder builder = options.apply(link.transferBuilder());
            if (link.sends()) {
              try (LinkTransfer transfer = builder.add("w", SHAPE, own, from).register(SOON)) {
                own.fill(1);
                assertThat(transfer.trySend(1, SOON)).isTrue();
                own.fill(2);
                transfer.send(2, SOON);
                transfer.finish(SOON);
                transfer.finish(SOON);
                assertThatThrownBy(() -> transfer.send(3, SOON))
                    .isInstanceOf(InvalidArgumentException.class)
                    .hasMessageContaining("was finished");
              }
              return;
            }
            Layout to = receivers.layout(Placement.replicate());
            try (LinkTransfer transfer = builder.into("w", SHAPE, own, to).register(SOON)) {
              assertThat(transfer.tryReceive(SOON)).hasValue(1);
              assertThat(transfer.receive(SOON)).isEqualTo(2);
              Thread.sleep(comm.rank() == 1 ? 200 : 0); // the sender may have left by then
              assertThat(transfer.isFinished()).isFalse();
              assertThat(transfer.tryReceive(SOON)).isEmpty();
              assertThat(transfer.isFinished()).isTrue();
              assertThat(transfer.tryReceive(SOON)).isEmpty();
              assertThatThrownBy(() -> transfer.receive(SOON))
                  .isInstanceOf(AbortedException.class)
                  .hasMessageContaining("receive on link 'policy': the senders have finished");
              assertThat(transfer.version()).hasValue(2);
              float[] values = new float[(int) SHAPE[0]];
              transfer.tensor("w").copyTo(values);
              assertThat(values).containsOnly(2);
            }
          }
        });
  }

  /** Of two senders one finishes while the other one sends: the link is over on that one. */
  @OnRanks(3)
  void aSenderThatStillSendsIsRefused(Ranks ranks) {
    ranks.run(
        comm -> {
          DeviceMesh senders = DeviceMesh.of(2);
          DeviceMesh receivers = DeviceMesh.of(1).ranks(new int[] {2});
          try (Link link = Link.open(comm, "policy", senders, receivers)) {
            LinkTransferBuilder builder = link.transferBuilder();
            long[] local = {SHAPE[0] / (link.sends() ? 2 : 1)};
            Tensor own = Tensor.allocate(DType.F32, local);
            if (link.sends()) {
              builder.add("w", SHAPE, own, senders.layout(Placement.shard(0)));
            } else {
              builder.into("w", SHAPE, own, receivers.layout(Placement.replicate()));
            }
            try (LinkTransfer transfer = builder.register(SOON)) {
              if (comm.rank() == 0) {
                transfer.finish(SOON);
              } else if (comm.rank() == 1) {
                assertThatThrownBy(() -> transfer.trySend(1, SOON))
                    .isInstanceOf(WindlassException.class)
                    .hasMessageContaining("in place of version 1");
              } else {
                assertThat(transfer.tryReceive(SOON)).isEmpty();
                assertThat(transfer.isFinished()).isTrue();
              }
            }
          }
        });
  }
}
