// SPDX-License-Identifier: Apache-2.0
package org.windlass.link;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.assertj.core.api.Assertions.catchThrowable;

import java.io.Serializable;
import java.time.Duration;
import java.util.concurrent.CountDownLatch;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.windlass.Communicator;
import org.windlass.DType;
import org.windlass.LocalGroup;
import org.windlass.Tensor;
import org.windlass.error.DeadlineExceededException;
import org.windlass.error.InvalidArgumentException;
import org.windlass.error.MismatchException;
import org.windlass.layout.DeviceMesh;
import org.windlass.layout.Layout;
import org.windlass.layout.Placement;
import org.windlass.report.Report;
import org.windlass.testing.Launch;
import org.windlass.testing.OnRanks;
import org.windlass.testing.Ranks;
import org.windlass.transfer.Progress;

/** Versions of a link: which one a receiver holds while the next arrives, and waits for. */
@Timeout(120)
class LinkVersionsTest {
  private static final Duration SOON = Duration.ofSeconds(30);

  private static double[] values(Tensor tensor) {
    double[] values = new double[Math.toIntExact(tensor.numel())];
    tensor.copyTo(values);
    return values;
  }

  private interface Sender extends Serializable {
    void send(LinkTransfer transfer, Tensor source);
  }

  private interface Options extends Serializable {
    void set(LinkTransferBuilder builder);
  }

  private interface Receiver extends Serializable {
    void receive(LinkTransfer transfer);
  }

  /** Sender rank 0 and receiver rank 1 of one vector, for what happens around a transfer. */
  private static void pair(
      Ranks ranks, Options options, long elements, Sender sender, Receiver receiver) {
    ranks.run(
        comm -> {
          DeviceMesh one = DeviceMesh.of(1);
          try (Link link = Link.open(comm, "pair", one, one.at(1))) {
            Tensor own = Tensor.allocate(DType.F32, elements);
            LinkTransferBuilder builder = link.transferBuilder();
            long[] shape = {elements};
            if (link.sends()) {
              builder.add("w", shape, own.fill(1), one.layout(Placement.shard(0)));
            } else {
              options.set(builder);
              builder.into("w", shape, own, one.at(1).layout(Placement.shard(0)));
            }
            try (LinkTransfer transfer = builder.register(SOON)) {
              if (link.sends()) {
                sender.send(transfer, own);
              } else {
                receiver.receive(transfer);
              }
            }
          }
        });
  }

  @OnRanks(2)
  void theVersionBeforeIsReadWhileTheNextArrives(Ranks ranks) {
    long elements = 1 << 20;
    pair(
        ranks,
        builder -> {},
        elements,
        (transfer, source) -> {
          for (long version = 1; version <= 12; version++) {
            source.fill(version);
            transfer.send(version);
          }
        },
        transfer -> {
          transfer.receive(1);
          float[] seen = new float[(int) elements];
          for (long version = 2; version <= 12; version++) {
            long next = version;
            Thread receiver = new Thread(() -> transfer.receive(next));
            Tensor held = transfer.tensor("w");
            receiver.start();
            do {
              held.copyTo(seen);
              for (float each : seen) {
                if (each != version - 1) {
                  throw new AssertionError("version " + (version - 1) + " holds " + each);
                }
              }
              Progress progress = transfer.progress();
              assertThat(progress.bytes()).isBetween(0L, elements * 4);
              assertThat(progress.tensors()).isBetween(0, 1);
            } while (receiver.isAlive());
            assertThat(transfer.version()).hasValue(version);
          }
        });
  }

  @OnRanks(2)
  void whatIsWrittenInPlaceIsNotReadMeanwhile(Ranks ranks) {
    pair(
        ranks,
        LinkTransferBuilder::inPlace,
        4,
        (transfer, source) -> {
          transfer.send(5);
          transfer.send(3);
        },
        transfer -> {
          assertThat(transfer.receive()).isEqualTo(5);
          Tensor first = transfer.tensor("w");
          assertThat(transfer.receive(SOON)).isEqualTo(3);
          assertThat(transfer.tensor("w").address()).isEqualTo(first.address());
          assertThat(transfer.incomplete()).isEmpty();
        });
  }

  /** Those of the ranks of this process. */
  @Test
  void progressCountsTensorsAndBytes() {
    pair(
        new Ranks(Launch.THREADS, 2),
        builder -> {},
        1000,
        (transfer, source) -> {
          assertThat(transfer.progress()).isEqualTo(new Progress(0, 1, 0, 4000));
          transfer.send(1);
          assertThat(transfer.progress()).isEqualTo(new Progress(1, 1, 4000, 4000));
          assertThat(transfer.progress()).hasToString("1 of 1 tensors, 4000 of 4000 bytes");
        },
        LinkTransfer::receive);
  }

  @OnRanks(2)
  void anotherVersionThanWantedIsNotReceived(Ranks ranks) {
    pair(
        ranks,
        builder -> {},
        4,
        (transfer, source) -> {
          transfer.send(1);
          assertThatThrownBy(() -> transfer.send(2))
              .isInstanceOf(MismatchException.class)
              .hasMessageContaining("rank 0 names version 2")
              .hasMessageContaining("rank 1 version 3");
          source.fill(3);
          transfer.send(3);
        },
        transfer -> {
          transfer.receive(1);
          assertThatThrownBy(() -> transfer.receive(3)).isInstanceOf(MismatchException.class);
          assertThat(transfer.version()).hasValue(1);
          assertThat(values(transfer.tensor("w"))).containsOnly(1);
          transfer.receive(3);
          assertThat(values(transfer.tensor("w"))).containsOnly(3);
        });
  }

  @Test
  void whatIsHeldInPlaceIsReadUntilTheSendersCome() {
    CountDownLatch read = new CountDownLatch(1);
    pair(
        new Ranks(Launch.THREADS, 2),
        LinkTransferBuilder::inPlace,
        4,
        (transfer, source) -> {
          transfer.send(1);
          await(read);
          source.fill(2);
          transfer.send(2);
        },
        transfer -> {
          transfer.receive();
          Thread receiver = new Thread(transfer::receive);
          receiver.start();
          while (transfer.progress().bytes() != 0) {
            Thread.onSpinWait(); // until it has entered
          }
          assertThat(transfer.version()).hasValue(1);
          assertThat(values(transfer.tensor("w"))).containsOnly(1);
          read.countDown();
          catchThrowable(receiver::join);
          assertThat(transfer.version()).hasValue(2);
          assertThat(values(transfer.tensor("w"))).containsOnly(2);
        });
  }

  @Test
  void aVersionTakesOneOperation() {
    DeviceMesh one = DeviceMesh.of(1);
    Layout whole = one.layout(Placement.replicate());
    try (LocalGroup group = LocalGroup.of(1);
        Link link = Link.open(group.communicator(0), "self", one, one)) {
      LinkTransferBuilder builder = link.transferBuilder();
      builder.add("w", new long[] {4}, f32(4), whole).into("w", new long[] {4}, f32(4), whole);
      try (LinkTransfer transfer = builder.register()) {
        int before = newest(link).sequence();
        for (long version = 1; version <= 3; version++) {
          transfer.send(version);
        }
        assertThat(newest(link).sequence()).isEqualTo(before + 3);
        assertThat(newest(link).operation()).isEqualTo("link send/receive");
      }
    }
  }

  private static Report.Call newest(Link link) {
    return link.communicator().report().ranks().get(0).recent().get(0);
  }

  @OnRanks(2)
  void aSenderThatNeverComesIsATimeout(Ranks ranks) {
    pair(
        ranks,
        LinkTransferBuilder::inPlace,
        4,
        (transfer, source) -> {
          transfer.send(1);
          assertThat(catchThrowable(() -> transfer.send(2, Duration.ofMillis(1))))
              .isInstanceOf(DeadlineExceededException.class);
        },
        transfer -> {
          transfer.receive();
          long start = System.nanoTime();
          assertThatThrownBy(
                  () -> {
                    Thread.sleep(200);
                    transfer.receive(Duration.ofMillis(100));
                  })
              .isInstanceOf(DeadlineExceededException.class);
          assertThat(System.nanoTime() - start).isLessThan(Duration.ofSeconds(20).toNanos());
          // Nothing had moved: the version before is whole even in place.
          assertThat(transfer.version()).hasValue(1);
          assertThat(values(transfer.tensor("w"))).containsOnly(1);
        });
  }

  @Test
  void oneThreadAtATimeCalls() {
    DeviceMesh one = DeviceMesh.of(1);
    Layout whole = one.layout(Placement.replicate());
    try (LocalGroup group = LocalGroup.of(1)) {
      Communicator comm = group.communicator(0);
      try (Link link = Link.open(comm, "self", one, one)) {
        LinkTransferBuilder builder = link.transferBuilder();
        builder.add("w", new long[] {4}, f32(4), whole).into("w", new long[] {4}, f32(4), whole);
        try (LinkTransfer transfer = builder.register()) {
          // The other call of this rank is in its agreement, as a queued operation holds it up.
          var block = new CountDownLatch(1);
          link.communicator().runAsync(c -> await(block));
          Thread sender = new Thread(() -> transfer.send(1), "the sender");
          sender.start();
          while (sender.getState() != Thread.State.WAITING
              && sender.getState() != Thread.State.TIMED_WAITING) {
            Thread.onSpinWait();
          }
          assertThatThrownBy(() -> transfer.send(1))
              .isInstanceOf(InvalidArgumentException.class)
              .hasMessageContaining("the sender");
          block.countDown();
          catchThrowable(sender::join);
          assertThat(transfer.version()).hasValue(1);
          assertThatThrownBy(transfer::receive).hasMessageContaining("receives in its send");
        }
      }
    }
  }

  private static void await(CountDownLatch latch) {
    try {
      latch.await();
    } catch (InterruptedException e) {
      throw new AssertionError(e);
    }
  }

  private static Tensor f32(long... shape) {
    return Tensor.allocate(DType.F32, shape);
  }
}
