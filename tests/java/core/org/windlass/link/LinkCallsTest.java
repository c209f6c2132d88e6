// SPDX-License-Identifier: Apache-2.0
package org.windlass.link;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.assertj.core.api.Assertions.catchThrowable;

import java.time.Duration;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.CyclicBarrier;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.windlass.Communicator;
import org.windlass.CommunicatorOptions;
import org.windlass.DType;
import org.windlass.LocalGroup;
import org.windlass.Tensor;
import org.windlass.error.AbortedException;
import org.windlass.error.ClosedException;
import org.windlass.error.InvalidArgumentException;
import org.windlass.error.MismatchException;
import org.windlass.layout.DeviceMesh;
import org.windlass.layout.Layout;
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
    LinkTransferBuilder builder = link.transferBuilder();
    if (link.sends()) {
      Tensor all = Tensor.allocate(DType.F32, 8, 8);
      return builder.add(name, SHAPE, all, SENDERS.layout(Placement.replicate())).register();
    }
    Tensor columns = Tensor.allocate(DType.F32, 8, 4);
    return builder.into(name, SHAPE, columns, RECEIVERS.layout(Placement.shard(1))).register();
  }

  @Test
  void aCallOnAnotherBatchOfALinkInUseIsRefusedAndTheLinkLives() throws Exception {
    CyclicBarrier met = new CyclicBarrier(4);
    try (LocalGroup group = LocalGroup.of(4, PATIENT)) {
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
    try (LocalGroup group = LocalGroup.of(4, PATIENT)) {
      group.run(
          communicator -> {
            Link link = Link.open(communicator, "weights", SENDERS, RECEIVERS);
            LinkTransfer transfer = register(link, "a");
            if (communicator.rank() == 0) {
              assertThat(catchThrowable(transfer::checkReplicas))
                  .isInstanceOf(AbortedException.class)
                  .hasMessageContaining("enough");
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
    try (LocalGroup group = LocalGroup.of(4, hasty)) {
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
                  // Either its deadline has passed, or the run has seen that rank 1 is at its end.
                  .hasMessageMatching("(?s).*(rank 1 failed the senders|rank 1, whose body has returned).*")
                  .hasMessageContaining("in checkReplicas");
            }
          });
    }
  }

  /** Rank 0 sends to rank 1 over one link, and to rank 2 over another, which fails. */
  @Test
  void whatFailsOverOneLinkIsToldAsThatLinksToPeersOfTheOther() {
    try (LocalGroup group = LocalGroup.of(3)) {
      group.run(
          comm -> {
            DeviceMesh first = DeviceMesh.of(1);
            try (Link one = Link.open(comm, "one", first, first.at(1));
                Link two = Link.open(comm, "two", first, first.at(2))) {
              long[] shape = {4};
              Tensor own = Tensor.allocate(DType.F32, 4);
              Layout whole = first.at(comm.rank()).layout(Placement.replicate());
              switch (comm.rank()) {
                case 0 -> {
                  LinkTransferBuilder both =
                      one.transferBuilder().add("v", shape, own, whole).and(two)
                          .add("w", shape, own, whole);
                  assertThatThrownBy(both::register)
                      .isInstanceOf(AbortedException.class)
                      .hasMessageStartingWith("register on link 'two': ")
                      .hasMessageContaining("not today");
                }
                case 1 ->
                    assertThatThrownBy(
                            () -> one.transferBuilder().into("v", shape, own, whole).register()
                                .receive())
                        .isInstanceOf(AbortedException.class)
                        .hasMessageContaining("register on link 'two' failed there: ");
                default -> two.communicator().abort("not today");
              }
              comm.barrier();
            }
          });
    }
  }

  @Test
  void closingALinkClosesWhatWasRegisteredOnIt() {
    DeviceMesh both = DeviceMesh.of(2);
    Layout rows = both.layout(Placement.shard(0));
    try (LocalGroup group = LocalGroup.of(2)) {
      group.run(
          comm -> {
            Link link = Link.open(comm, "one", both, both);
            try (Link other = Link.open(comm, "two", both, both)) {
              LinkTransfer over = bothWays(link.transferBuilder(), "w", rows).register();
              LinkTransfer overBoth =
                  bothWays(bothWays(link.transferBuilder(), "v", rows).and(other), "u", rows)
                      .register();
              LinkTransfer goesOn = bothWays(other.transferBuilder(), "w", rows).register();
              over.send(1);
              comm.barrier();
              link.close();
              for (LinkTransfer closed : List.of(over, overBoth)) {
                assertThatThrownBy(closed::progress)
                    .isInstanceOf(ClosedException.class)
                    .hasMessageContaining("the transfer was closed");
              }
              assertThat(over.version()).hasValue(1);
              comm.barrier();
              goesOn.send(2);
              assertThat(goesOn.progress().tensors()).isEqualTo(1);
              comm.barrier();
            }
          });
    }
  }

  private static LinkTransferBuilder bothWays(LinkTransferBuilder builder, String name,
      Layout rows) {
    long[] shape = {4, 3};
    return builder
        .add(name, shape, Tensor.allocate(DType.F32, 2, 3), rows)
        .into(name, shape, Tensor.allocate(DType.F32, 2, 3), rows);
  }

  /** A receive in place, which has to say what is incomplete. */
  @Test
  void aCallThatClosingALinkEndsClosesItsTransferItself() throws Exception {
    try (LocalGroup group = LocalGroup.of(2)) {
      List<Link> links =
          group.call(
              comm -> Link.open(comm, "two", DeviceMesh.of(1), DeviceMesh.of(1).at(1)));
      long[] shape = {4};
      List<LinkTransfer> transfers =
          group.call(
              comm -> {
                Link link = links.get(comm.rank());
                Layout whole = DeviceMesh.of(1).at(comm.rank()).layout(Placement.replicate());
                Tensor own = Tensor.allocate(DType.F32, 4);
                LinkTransferBuilder builder = link.transferBuilder().inPlace();
                return (comm.rank() == 0
                        ? builder.add("w", shape, own, whole)
                        : builder.into("w", shape, own, whole))
                    .register();
              });
      CompletableFuture<Throwable> receives =
          CompletableFuture.supplyAsync(() -> catchThrowable(() -> transfers.get(1).receive()));
      Thread.sleep(100);
      links.get(1).close();
      assertThat(receives.get(30, TimeUnit.SECONDS)).isInstanceOf(ClosedException.class);
      assertThat(transfers.get(1).incomplete()).isEmpty();
      assertThatThrownBy(() -> transfers.get(1).progress()).isInstanceOf(ClosedException.class);
      links.get(0).close();
    }
  }

  /** Ranks 0 and 1 disagree, and rank 2 hears of it when it leaves. */
  @Test
  void closingALinkTellsOfBothOfItsCommunicators() {
    CountDownLatch disagreed = new CountDownLatch(2);
    try (LocalGroup group = LocalGroup.of(3)) {
      group.run(
          comm -> {
            DeviceMesh all = DeviceMesh.of(3);
            Link link = Link.open(comm, "both", all, all);
            if (comm.rank() < 2) {
              for (Communicator each :
                  List.of(link.senders().communicator(), link.communicator())) {
                assertThatThrownBy(() -> disagree(each)).isInstanceOf(MismatchException.class);
              }
              disagreed.countDown();
              link.close();
              return;
            }
            await(disagreed);
            assertThatThrownBy(link::close)
                .isInstanceOf(MismatchException.class)
                .satisfies(
                    failure ->
                        assertThat(failure.getSuppressed())
                            .singleElement()
                            .isInstanceOf(MismatchException.class));
          });
    }
  }

  private static void await(CountDownLatch latch) {
    try {
      assertThat(latch.await(30, TimeUnit.SECONDS)).isTrue();
    } catch (InterruptedException e) {
      throw new AssertionError(e);
    }
  }

  /** Each of the two waits for the other, and sees what that one calls. */
  private static void disagree(Communicator communicator) {
    if (communicator.rank() == 0) {
      communicator.barrier();
    } else {
      Tensor tensor = Tensor.allocate(DType.F32, 4);
      communicator.broadcast(tensor, tensor, 0);
    }
  }
}
