// SPDX-License-Identifier: Apache-2.0
package org.windlass.link;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.assertj.core.api.Assertions.catchThrowable;

import java.io.Serializable;
import java.time.Duration;
import java.util.Arrays;
import java.util.List;
import java.util.Random;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.windlass.DType;
import org.windlass.LocalGroup;
import org.windlass.Tensor;
import org.windlass.error.MismatchException;
import org.windlass.error.UnsupportedException;
import org.windlass.error.WindlassException;
import org.windlass.internal.transfer.Moving;
import org.windlass.internal.transfer.Offer;
import org.windlass.layout.DeviceMesh;
import org.windlass.layout.Layout;
import org.windlass.layout.Placement;
import org.windlass.layout.TensorSpec;
import org.windlass.plan.TransferMode;
import org.windlass.testing.OnRanks;
import org.windlass.testing.Ranks;

/** What the ranks of a link are told that disagree, or call what does not fit. */
@Timeout(120)
class LinkAgreementTest {
  private static final Duration SOON = Duration.ofSeconds(30);
  private static final long[] SQUARE = {8, 8};
  private static final Layout SENT = DeviceMesh.of(2).layout(Placement.shard(0));
  private static final Layout TAKEN = DeviceMesh.of(2).at(2).layout(Placement.shard(1));

  /** What each rank of senders {0, 1} and receivers {2, 3} brings, and what all are told. */
  private static void disagree(
      Ranks ranks, Class<? extends WindlassException> kind, List<String> told, Bring bring) {
    ranks.run(
        comm -> {
          DeviceMesh two = DeviceMesh.of(2);
          try (Link link = Link.open(comm, "weights", two, two.at(2))) {
            LinkTransferBuilder builder = link.transferBuilder();
            bring.to(builder, comm.rank());
            Throwable failure = catchThrowable(() -> builder.register(SOON));
            assertThat(failure).isInstanceOf(kind);
            told.forEach(text -> assertThat(failure).hasMessageContaining(text));
            // The link goes on.
            LinkTransferBuilder again = link.transferBuilder();
            fits(again, comm.rank());
            try (LinkTransfer transfer = again.register(SOON)) {
              move(link, transfer);
            }
          }
        });
  }

  private static void move(Link link, LinkTransfer transfer) {
    if (link.sends()) {
      transfer.send(1);
    } else {
      transfer.receive();
    }
  }

  private interface Bring extends Serializable {
    void to(LinkTransferBuilder builder, int rank);
  }

  private static Tensor f32(long... shape) {
    return Tensor.allocate(DType.F32, shape);
  }

  private static void fits(LinkTransferBuilder builder, int rank) {
    if (rank < 2) {
      builder.add("w", SQUARE, f32(4, 8), SENT);
    } else {
      builder.into("w", SQUARE, f32(8, 4), TAKEN);
    }
  }

  @OnRanks(4)
  void aNameOnOneSideAloneIsAMismatch(Ranks ranks) {
    disagree(
        ranks,
        MismatchException.class,
        List.of("'b'", "rank 0 sends it and no rank receives it"),
        (builder, rank) -> {
          fits(builder, rank);
          if (rank < 2) {
            builder.add("b", SQUARE, f32(4, 8), SENT);
          }
        });
    disagree(
        ranks,
        MismatchException.class,
        List.of("'b'", "rank 3 receives it and no rank sends it"),
        (builder, rank) -> {
          fits(builder, rank);
          if (rank == 3) {
            builder.into("b", new long[] {3}, f32(3), Layout.parse("1@3:R"));
          }
        });
  }

  @OnRanks(4)
  void shapesThatDifferAreAMismatch(Ranks ranks) {
    disagree(
        ranks,
        MismatchException.class,
        List.of("'w'", "rank 0 sends shape [8, 8]", "rank 2 receives shape [8, 6]"),
        (builder, rank) -> {
          if (rank < 2) {
            fits(builder, rank);
          } else {
            builder.into("w", new long[] {8, 6}, f32(8, 3), TAKEN);
          }
        });
  }

  @OnRanks(4)
  void ranksOfASideThatDifferAreAMismatch(Ranks ranks) {
    disagree(
        ranks,
        MismatchException.class,
        List.of("'w'", "rank 0 sends it as f32[8, 8] under 2:S0", "rank 1 as bf16[8, 8]"),
        (builder, rank) -> {
          if (rank == 1) {
            builder.add("w", SQUARE, Tensor.allocate(DType.BF16, 4, 8), SENT);
          } else {
            fits(builder, rank);
          }
        });
    disagree(
        ranks,
        MismatchException.class,
        List.of("'w'", "rank 0 sends it", "rank 1", "by bf16"),
        (builder, rank) -> {
          if (rank == 1) {
            builder.defaultWire(DType.BF16);
          }
          fits(builder, rank);
        });
    disagree(
        ranks,
        MismatchException.class,
        List.of("'w'", "rank 2 receives it", "rank 3 holds a part of that and has not named it"),
        (builder, rank) -> {
          if (rank < 3) {
            fits(builder, rank);
          }
        });
  }

  @OnRanks(4)
  void aDtypeThatDoesNotCastIsUnsupported(Ranks ranks) {
    disagree(
        ranks,
        UnsupportedException.class,
        List.of("'w'", "f32", "i32"),
        (builder, rank) -> {
          if (rank < 2) {
            fits(builder, rank);
          } else {
            builder.into("w", SQUARE, Tensor.allocate(DType.I32, 8, 4), TAKEN);
          }
        });
  }

  @Test
  void wrongCallsSayWhatIsWrong() {
    try (LocalGroup group = LocalGroup.of(4)) {
      group.run(
          comm -> {
            DeviceMesh two = DeviceMesh.of(2);
            assertThatThrownBy(() -> Link.open(comm, null, two, two)).hasMessageContaining("name");
            assertThatThrownBy(() -> Link.open(comm, "x", null, two))
                .hasMessageContaining("senders");
            assertThatThrownBy(() -> Link.open(comm, "x", two, two.at(3)))
                .hasMessageContaining("rank 4");
            try (Link link = Link.open(comm, "x", two, two.at(2))) {
              LinkTransferBuilder builder = link.transferBuilder();
              if (comm.rank() >= 2) {
                assertThatThrownBy(() -> fits(builder, 0))
                    .hasMessageContaining("this rank is not a sender");
                assertThatThrownBy(() -> builder.into("w", SQUARE, f32(8, 4), SENT))
                    .hasMessageContaining("holds rank 0, which is not a receiver");
                assertThatThrownBy(() -> builder.into("w", SQUARE, f32(8, 8), Layout.parse("2@2:P")))
                    .hasMessageContaining("Partial");
                assertThatThrownBy(() -> builder.into("w", SQUARE, f32(4, 4), TAKEN))
                    .hasMessageContaining("into: target of tensor 'w' has shape [4, 4]");
                Tensor target = f32(8, 4);
                builder.into("w", SQUARE, target, TAKEN).into("v", SQUARE, target, TAKEN);
                assertThatThrownBy(builder::register).hasMessageContaining("overlaps");
              } else {
                assertThatThrownBy(() -> builder.into("w", SQUARE, f32(8, 4), TAKEN))
                    .hasMessageContaining("this rank is not a receiver");
                assertThatThrownBy(() -> builder.add("w", SQUARE, null, SENT))
                    .isInstanceOf(NullPointerException.class)
                    .hasMessageContaining("source of tensor 'w' is null");
                fits(builder, comm.rank());
                assertThatThrownBy(() -> fits(builder, comm.rank()))
                    .hasMessageContaining("'w' was added before");
                assertThatThrownBy(() -> builder.defaultWire(null)).hasMessage("dtype");
                assertThatThrownBy(() -> builder.defaultBucketBytes(0)).hasMessageContaining("0");
              }
              comm.barrier();
              LinkTransferBuilder good = link.transferBuilder();
              fits(good, comm.rank());
              try (LinkTransfer transfer = good.register(SOON)) {
                assertThatThrownBy(good::register).hasMessageContaining("registered already");
                assertThatThrownBy(() -> fits(good, comm.rank()))
                    .hasMessageContaining("registered already");
                if (link.sends()) {
                  assertThatThrownBy(transfer::receive).hasMessageContaining("not a receiver");
                  assertThatThrownBy(transfer::version).hasMessageContaining("not a receiver");
                  assertThatThrownBy(() -> transfer.send(-1)).hasMessageContaining("-1");
                } else {
                  assertThatThrownBy(() -> transfer.send(1)).hasMessageContaining("not a sender");
                  assertThatThrownBy(transfer::checkReplicas).hasMessageContaining("not a sender");
                }
                move(link, transfer);
              }
            }
          });
    }
  }

  @Test
  void linksOfOtherNamesOrSidesAreAMismatch() {
    DeviceMesh one = DeviceMesh.of(1);
    try (LocalGroup group = LocalGroup.of(2)) {
      group.run(
          comm ->
              assertThatThrownBy(() -> Link.open(comm, "link " + comm.rank(), one, one.at(1)))
                  .isInstanceOf(MismatchException.class)
                  .hasMessageContaining("link " + comm.rank()));
      group.run(
          comm -> {
            DeviceMesh first = one.at(comm.rank());
            assertThatThrownBy(() -> Link.open(comm, "link", first, one.at(1 - comm.rank())))
                .isInstanceOf(MismatchException.class);
          });
    }
  }

  @Test
  void everyRankIsToldWhatTwoRanksOpen() {
    DeviceMesh one = DeviceMesh.of(1);
    try (LocalGroup group = LocalGroup.of(3)) {
      group.run(
          comm -> {
            String name = comm.rank() == 1 ? "other" : "weights";
            assertThatThrownBy(() -> Link.open(comm, name, one, one.at(1)))
                .isInstanceOf(MismatchException.class)
                .hasMessage(
                    "link '"
                        + name
                        + "': rank 0 opens link 'weights' from mesh 1 to mesh 1@1, rank 1 opens link"
                        + " 'other' from mesh 1 to mesh 1@1")
                .satisfies(
                    e -> assertThat(((WindlassException) e).faultyRanks()).containsExactly(0, 1));
            DeviceMesh last = one.at(comm.rank() == 2 ? 2 : 1);
            assertThatThrownBy(() -> Link.open(comm, "weights", one, last))
                .isInstanceOf(MismatchException.class)
                .hasMessageContaining("rank 0 opens link 'weights' from mesh 1 to mesh 1@1")
                .hasMessageContaining("rank 2 opens link 'weights' from mesh 1 to mesh 1@2");
            // The communicator goes on.
            try (Link link = Link.open(comm, "weights", one, one.at(1))) {
              assertThat(link == null).isEqualTo(comm.rank() == 2);
            }
          });
    }
  }

  @Test
  void whoWaitsForALinkIsToldOfTheLink() {
    DeviceMesh one = DeviceMesh.of(1);
    try (LocalGroup group = LocalGroup.of(2)) {
      group.run(
          comm -> {
            if (comm.rank() == 1) {
              assertThatThrownBy(comm::barrier).isInstanceOf(MismatchException.class);
              return;
            }
            assertThatThrownBy(() -> Link.open(comm, "weights", one, one.at(1)))
                .isInstanceOf(MismatchException.class)
                .hasMessageStartingWith("link 'weights': ")
                .hasMessageContaining("rank 0 calls link")
                .hasMessageContaining("rank 1 calls barrier");
          });
    }
  }

  @Test
  void anyBytesAreAnOfferOrAMismatch() {
    long seed = System.nanoTime();
    Random random = new Random(seed);
    Offer offer =
        new Offer(
            true,
            false,
            3,
            List.of(
                new Offer.Sent(
                    TensorSpec.of("w\u00fc", DType.F32, SENT, SQUARE),
                    Moving.DEFAULT.withWire(DType.BF16).withMode(TransferMode.STAGED)),
                new Offer.Sent(TensorSpec.of("", DType.I8, SENT, 3), Moving.DEFAULT)),
            List.of(TensorSpec.of("w", DType.F16, TAKEN, SQUARE)));
    byte[] bytes = offer.encode();
    assertThat(Offer.decode(0, bytes)).isEqualTo(offer);
    int read = 0;
    for (int round = 0; round < 20_000; round++) {
      byte[] changed = Arrays.copyOf(bytes, random.nextInt(bytes.length + 2));
      for (int change = random.nextInt(4); change > 0 && changed.length > 0; change--) {
        changed[random.nextInt(changed.length)] = (byte) random.nextInt();
      }
      try {
        Offer.decode(3, changed);
        read++;
      } catch (MismatchException expected) {
        assertThat(expected).as("seed %d", seed).hasMessageContaining("rank 3");
        continue;
      }
      // What can be read may name anything; nobody sends what rank 0 receives.
      byte[][] offers = {bytes, bytes, bytes, changed};
      assertThat(catchThrowable(() -> new Agreement(offers, (isSent, layout) -> layout.toString())))
          .as("seed %d", seed)
          .isInstanceOf(MismatchException.class);
    }
    assertThat(read).isLessThan(10_000);
  }
}
