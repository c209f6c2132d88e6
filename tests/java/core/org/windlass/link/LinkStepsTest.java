// SPDX-License-Identifier: Apache-2.0
package org.windlass.link;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.assertj.core.api.Assertions.catchThrowable;

import java.time.Duration;
import java.util.Random;
import java.util.concurrent.CyclicBarrier;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;
import org.windlass.Communicator;
import org.windlass.CommunicatorOptions;
import org.windlass.DType;
import org.windlass.LocalGroup;
import org.windlass.Tensor;
import org.windlass.error.AbortedException;
import org.windlass.error.ClosedException;
import org.windlass.error.DeadlineExceededException;
import org.windlass.error.InvalidArgumentException;
import org.windlass.error.MismatchException;
import org.windlass.error.WindlassException;
import org.windlass.internal.Deadline;
import org.windlass.internal.Native;
import org.windlass.internal.call.Gathered;
import org.windlass.layout.DeviceMesh;
import org.windlass.layout.Layout;
import org.windlass.layout.Placement;

/**
 * What the ranks of a link are told when they are at steps of different operations, or when one of
 * them goes no further: at once, by the operation's public name, with the link's and the version.
 */
@Timeout(120)
class LinkStepsTest {
  private static final Duration LONG = Duration.ofSeconds(60);
  private static final long[] SQUARE = {8, 8};
  private static final DeviceMesh SENDERS = DeviceMesh.of(2);
  private static final DeviceMesh RECEIVERS = DeviceMesh.of(2).at(2);
  private static final Layout SENT = SENDERS.layout(Placement.shard(0));
  private static final Layout TAKEN = RECEIVERS.layout(Placement.shard(1));

  /** A rank's part of a link of four ranks, of which 0 and 1 send to 2 and 3. */
  private record Part(Link link, Tensor view) {
    static Part join(Communicator communicator) {
      Link link = Link.open(communicator, "weights", SENDERS, RECEIVERS);
      return new Part(link, Tensor.allocate(DType.F32, link.sends() ? 4 : 8, link.sends() ? 8 : 4));
    }

    LinkTransferBuilder transferBuilder() {
      LinkTransferBuilder builder = link.transferBuilder();
      return link.sends()
          ? builder.add("w", SQUARE, view, SENT)
          : builder.into("w", SQUARE, view, TAKEN);
    }

    LinkTransfer register(Duration deadline) {
      return transferBuilder().register(deadline);
    }

    void move(LinkTransfer transfer, long version, Duration deadline) {
      if (link.sends()) {
        transfer.send(version, deadline);
      } else {
        transfer.receive(deadline);
      }
    }

    String moving(long version) {
      return (link.sends() ? "send of version " + version : "receive") + " on link 'weights'";
    }
  }

  private interface Call {
    void by(Part part, LinkTransfer registered);
  }

  /** What each rank of a link with one registered transfer gets, within half of {@link #LONG}. */
  private static WindlassException[] failures(Call call) throws Exception {
    WindlassException[] failures = new WindlassException[4];
    CyclicBarrier over = new CyclicBarrier(4); // who leaves ends the others' calls
    try (LocalGroup group = LocalGroup.of(4)) {
      long start = System.nanoTime();
      group.run(
          communicator -> {
            Part part = Part.join(communicator);
            try (LinkTransfer transfer = part.register(LONG)) {
              failures[communicator.rank()] =
                  (WindlassException) catchThrowable(() -> call.by(part, transfer));
              over.await(LONG.toSeconds(), TimeUnit.SECONDS);
            } finally {
              part.link.close();
            }
          });
      assertThat(Duration.ofNanos(System.nanoTime() - start)).isLessThan(LONG.dividedBy(2));
    }
    return failures;
  }

  @ParameterizedTest
  @ValueSource(longs = {1, -8_500_000_000L, 8_500_000_000L, Long.MAX_VALUE})
  void aRankThatRegistersWhileOthersSendIsAMismatch(long version) throws Exception {
    WindlassException[] failures =
        failures(
            (part, transfer) -> {
              if (part.link.communicator().rank() == 0) {
                part.register(LONG).close();
              } else {
                part.move(transfer, Math.abs(version), LONG);
              }
            });
    for (int rank = 0; rank < 4; rank++) {
      assertThat(failures[rank])
          .isInstanceOf(MismatchException.class)
          .hasMessageContaining("link 'weights'")
          .hasMessageContaining("rank 0 calls link register")
          .hasMessageContaining("calls link send/receive");
      assertThat(failures[rank].faultyRanks()).hasSize(2).contains(0);
    }
    assertThat(failures[0].operation()).isEqualTo("register on link 'weights'");
    assertThat(failures[1].operation())
        .isEqualTo("send of version " + Math.abs(version) + " on link 'weights'");
    assertThat(failures[2].operation()).isEqualTo("receive on link 'weights'");
  }

  @ParameterizedTest
  @ValueSource(ints = {0, 3})
  void aRankWhoseViewIsClosedFailsTheLinkForItsPeersAtOnce(int victim) throws Exception {
    WindlassException[] failures =
        failures(
            (part, transfer) -> {
              if (part.link.communicator().rank() == victim) {
                part.view.close();
              }
              part.move(transfer, 5, LONG);
            });
    for (int rank = 0; rank < 4; rank++) {
      assertThat(failures[rank])
          .isInstanceOf(rank == victim ? ClosedException.class : AbortedException.class)
          .hasMessageContaining("of version 5 on link 'weights'")
          .hasMessageContaining("of tensor 'w'");
      if (rank != victim) {
        assertThat(failures[rank].faultyRanks()).containsExactly(victim);
        assertThat(failures[rank]).hasMessageContaining("rank " + victim + " aborted");
      }
    }
  }

  @Test
  void aRankThatCannotRegisterFailsTheLinkForItsPeersAtOnce() throws Exception {
    WindlassException[] failures =
        failures(
            (part, transfer) -> {
              LinkTransferBuilder builder = part.transferBuilder();
              if (part.link.communicator().rank() == 2) {
                part.view.close();
              }
              builder.register(LONG).close();
            });
    for (int rank = 0; rank < 4; rank++) {
      assertThat(failures[rank])
          .isInstanceOf(rank == 2 ? ClosedException.class : AbortedException.class)
          .hasMessageContaining("register on link 'weights'")
          .hasMessageContaining("tensor 'w'");
    }
    assertThat(failures[0].faultyRanks()).containsExactly(2);
  }

  @Test
  void aCallThatIsRefusedBeforeItSendsAnythingLeavesTheLinkAsItIs() throws Exception {
    WindlassException[] failures =
        failures(
            (part, transfer) -> {
              if (part.link.sends()) {
                assertThatThrownBy(() -> transfer.send(-1))
                    .isInstanceOf(InvalidArgumentException.class);
              }
              part.move(transfer, 1, LONG);
            });
    assertThat(failures).containsOnlyNulls();
  }

  @Test
  void aPassedDeadlineSpeaksOfTheOperationThatWasCalled() throws Exception {
    Duration brief = Duration.ofMillis(700);
    WindlassException[] failures =
        failures(
            (part, transfer) -> {
              if (part.link.communicator().rank() != 3) {
                part.move(transfer, 9, brief);
              }
            });
    assertThat(failures[3]).isNull();
    requirePassedDeadlines(failures, "send of version 9 on link 'weights'",
        "receive on link 'weights'");
    failures =
        failures(
            (part, transfer) -> {
              if (part.link.communicator().rank() != 3) {
                part.register(brief);
              }
            });
    String register = "register on link 'weights'";
    requirePassedDeadlines(failures, register, register);
  }

  private static void requirePassedDeadlines(
      WindlassException[] failures, String ofSender, String ofReceiver) {
    for (int rank = 0; rank < 3; rank++) {
      String operation = rank < 2 ? ofSender : ofReceiver;
      assertThat(failures[rank])
          .isInstanceOf(DeadlineExceededException.class)
          .hasMessageStartingWith(operation + ": ")
          .hasMessageContaining("rank 3 has not come")
          .satisfies(e -> assertThat(e.getMessage()).doesNotContain("gather"));
      assertThat(failures[rank].operation()).isEqualTo(operation);
      assertThat(failures[rank].faultyRanks()).containsExactly(3);
    }
  }

  @ParameterizedTest
  @ValueSource(longs = {-1, Gathered.MOST_BYTES + 1L, Long.MAX_VALUE})
  void aLengthThatNoRankGivesIsRefusedBeforeAnythingIsAllocated(long length) {
    try (LocalGroup group = LocalGroup.of(2)) {
      group.run(
          communicator -> {
            int step = Native.WL_OP_LINK_REGISTER;
            Deadline until = Deadline.of(Deadline.DEFAULT);
            if (communicator.rank() == 1) {
              Gathered.words(communicator, until::leftNs, step, 17, length);
            } else {
              assertThatThrownBy(
                      () -> Gathered.bytes(communicator, until::leftNs, step, new byte[3]))
                  .isInstanceOf(MismatchException.class)
                  .hasMessageContaining("rank 1")
                  .hasMessageContaining(Long.toString(length));
            }
          });
    }
  }

  /** Links and subgroups that an abort overtakes: who gets one never waits for who got none. */
  @Test
  void aLinkOvertakenByAnAbortLeavesNobodyWaiting() throws Exception {
    long seed = System.nanoTime();
    Random random = new Random(seed);
    AtomicInteger incomplete = new AtomicInteger();
    for (int round = 0; round < 150; round++) {
      int victim = random.nextInt(4);
      long delayNs = random.nextInt(500_000);
      AtomicInteger made = new AtomicInteger();
      CommunicatorOptions options =
          CommunicatorOptions.defaults()
              .withDeadline(LONG)
              .withCores(random.nextBoolean() ? 1 : 64);
      try (LocalGroup group = LocalGroup.of(4, options)) {
        Thread ender =
            new Thread(
                () -> {
                  while (made.get() < 4) {
                    Thread.onSpinWait();
                  }
                  long at = System.nanoTime() + delayNs;
                  while (System.nanoTime() < at) {
                    Thread.onSpinWait();
                  }
                  group.communicator(victim).abort("of the test");
                });
        ender.start();
        long start = System.nanoTime();
        group.run(
            communicator -> {
              Throwable end = null;
              while (end == null) {
                end = catchThrowable(() -> enterBarriers(communicator, made));
              }
              assertThat(end).as("seed %d", seed).isInstanceOf(AbortedException.class);
              assertThat(((AbortedException) end).faultyRanks()).as("seed %d", seed).isNotEmpty();
              incomplete.addAndGet(end.getMessage().contains("never joined") ? 1 : 0);
            });
        ender.join();
        assertThat(Duration.ofNanos(System.nanoTime() - start))
            .as("seed %d", seed)
            .isLessThan(LONG.dividedBy(2));
      }
    }
    System.out.println(incomplete + " ranks were told of one that never joined");
  }

  private static void enterBarriers(Communicator communicator, AtomicInteger made) {
    try (Link link = Link.open(communicator, "weights", SENDERS, RECEIVERS)) {
      made.incrementAndGet();
      link.communicator().barrier();
    }
  }
}
