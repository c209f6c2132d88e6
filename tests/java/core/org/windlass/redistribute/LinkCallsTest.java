// SPDX-License-Identifier: Apache-2.0
package org.windlass.redistribute;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.assertj.core.api.Assertions.catchThrowable;

import java.time.Duration;
import java.util.List;
import java.util.concurrent.CyclicBarrier;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.windlass.AbortedException;
import org.windlass.Communicator;
import org.windlass.CommunicatorOptions;
import org.windlass.DType;
import org.windlass.InvalidArgumentException;
import org.windlass.LocalGroup;
import org.windlass.MismatchException;
import org.windlass.Tensor;
import org.windlass.layout.DeviceMesh;
import org.windlass.layout.Placement;

/** Which calls on a link go together, and what ends them: 0 and 1 send, 2 and 3 receive. */
@Timeout(60)
class LinkCallsTest {
  private static final long[] SHAPE = {8, 8};
  private static final DeviceMesh SENDERS = DeviceMesh.of(2);
  private static final DeviceMesh RECEIVERS = DeviceMesh.of(2).at(2);
  private static final CommunicatorOptions PATIENT =
      CommunicatorOptions.defaults().withDeadline(Duration.ofSeconds(20));

  private static LinkTransfer register(Link link, String name) {
    LinkBatch batch = link.batch();
    if (link.sends()) {
      Tensor all = Tensor.allocate(DType.F32, 8, 8);
      return batch.add(name, SHAPE, all, SENDERS.layout(Placement.replicate())).register();
    }
    Tensor columns = Tensor.allocate(DType.F32, 8, 4);
    return batch.into(name, SHAPE, columns, RECEIVERS.layout(Placement.shard(1))).register();
  }

  @Test
  void aCallOnAnotherBatchOfALinkInUseIsRefusedAndTheLinkLives() throws Exception {
    CyclicBarrier met = new CyclicBarrier(4);
    try (LocalGroup group = Communicator.local(4, PATIENT)) {
      group.run(
          communicator -> {
            try (Link link = Link.open(communicator, "weights", SENDERS, RECEIVERS)) {
              LinkTransfer first = register(link, "a");
              LinkTransfer second = register(link, "b");
              met.await();
              if (communicator.rank() == 2) {
                Thread receiver = new Thread(first::receive, "receiver");
                receiver.start();
                while (!isWaiting(link)) {
                  Thread.onSpinWait();
                }
                assertThatThrownBy(second::receive)
                    .isInstanceOf(InvalidArgumentException.class)
                    .hasMessageContaining("link 'weights' is in a call of thread \"receiver\"");
                met.await();
                receiver.join();
              } else {
                met.await();
                if (link.sends()) {
                  first.send(1);
                } else {
                  first.receive();
                }
              }
              if (link.receives()) {
                assertThat(first.version()).hasValue(1);
              }
              assertThat(link.communicator().failure()).isEmpty();
              met.await();
            }
          });
    }
  }

  /** Whether this link's rank 2 is inside a call. */
  private static boolean isWaiting(Link link) {
    return link.communicator().report().ranks().get(2).current().isPresent();
  }

  @Test
  void anAbortOfTheLinkEndsACheckOfReplicas() {
    try (LocalGroup group = Communicator.local(4, PATIENT)) {
      group.run(
          communicator -> {
            Link link = Link.open(communicator, "weights", SENDERS, RECEIVERS);
            LinkTransfer transfer = register(link, "a");
            if (communicator.rank() == 0) {
              long start = System.nanoTime();
              assertThat(catchThrowable(transfer::checkReplicas))
                  .isInstanceOf(AbortedException.class)
                  .hasMessageContaining("enough");
              assertThat(System.nanoTime() - start).isLessThan(15_000_000_000L);
            } else if (communicator.rank() == 1) {
              link.communicator().abort("enough");
            }
          });
    }
  }

  @Test
  void aFailedCheckOfReplicasEndsTheLink() {
    CommunicatorOptions hasty =
        CommunicatorOptions.defaults().withDeadline(Duration.ofMillis(300));
    try (LocalGroup group = Communicator.local(4, hasty)) {
      group.run(
          communicator -> {
            Link link = Link.open(communicator, "weights", SENDERS, RECEIVERS);
            LinkTransfer transfer = register(link, "a");
            if (communicator.rank() == 0) {
              assertThatThrownBy(transfer::checkReplicas)
                  .isInstanceOf(AbortedException.class)
                  .hasMessageContaining("checkReplicas on link 'weights'");
            } else if (link.receives()) {
              assertThatThrownBy(() -> transfer.receive(Duration.ofSeconds(15)))
                  .isInstanceOf(AbortedException.class)
                  .hasMessageContaining("rank 1 failed the senders")
                  .hasMessageContaining("in checkReplicas");
            }
          });
    }
  }

  /** Small: the root waits for nobody. */
  private static void broadcastFrom(int root, Communicator communicator) {
    Tensor tensor = Tensor.allocate(DType.F32, 4);
    communicator.broadcast(tensor, tensor, root);
  }

  private static void everyRankIsTheRoot(Communicator communicator) {
    broadcastFrom(communicator.rank(), communicator);
  }

  @Test
  void closingALinkTellsOfBothOfItsCommunicators() {
    try (LocalGroup group = Communicator.local(2)) {
      DeviceMesh both = DeviceMesh.of(2);
      List<Link> links = group.call(communicator -> Link.open(communicator, "both", both, both));
      for (Link link : links) {
        everyRankIsTheRoot(link.senders().communicator());
        everyRankIsTheRoot(link.communicator());
      }
      for (Link link : links) {
        assertThatThrownBy(link::close)
            .isInstanceOf(MismatchException.class)
            .satisfies(
                failure ->
                    assertThat(failure.getSuppressed())
                        .singleElement()
                        .isInstanceOf(MismatchException.class));
      }
    }
  }
}
