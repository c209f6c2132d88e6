// SPDX-License-Identifier: Apache-2.0
package org.windlass.transfer;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.time.Duration;
import java.util.List;
import org.junit.jupiter.api.Test;
import org.windlass.Communicator;
import org.windlass.DType;
import org.windlass.LocalGroup;
import org.windlass.Tensor;
import org.windlass.error.ClosedException;
import org.windlass.error.InvalidArgumentException;
import org.windlass.error.MismatchException;
import org.windlass.layout.DeviceMesh;
import org.windlass.layout.Layout;
import org.windlass.layout.TensorSpec;
import org.windlass.link.Link;
import org.windlass.link.LinkTransferBuilder;
import org.windlass.plan.TransferMode;
import org.windlass.testing.OnRanks;
import org.windlass.testing.Ranks;

/** Transfers: fused, stacked and tied views, renaming, casts, versions, failures. */
class TransferBuilderTest {
  private static final Layout WHOLE = Layout.parse("1:R");

  private static double[] values(Tensor tensor) {
    double[] values = new double[(int) tensor.numel()];
    tensor.copyTo(values);
    return values;
  }

  @OnRanks(2)
  void fusedViewsAreFilledSideBySide(Ranks ranks) {
    ranks.run(
        communicator -> {
          Layout rows = Layout.parse("2:S0");
          Layout replicated = Layout.parse("2:R");
          Tensor fused = Tensor.allocate(DType.BF16, 12, 3);
          TransferBuilder builder = TransferBuilder.of(communicator);
          int at = 0;
          for (String name : new String[] {"q", "k", "v"}) {
            Tensor piece = Tensor.allocate(DType.F32, 2, 3);
            piece.fill(10 * at + communicator.rank());
            builder.add(
                TensorSpec.of(name, DType.F32, rows, 4, 3),
                piece,
                TensorSpec.of(name, DType.BF16, replicated, 4, 3),
                fused.narrow(0, at, 4));
            at += 4;
          }
          try (Transfer transfer = builder.register()) {
            transfer.run();
            assertThat(transfer.totalBytes()).isEqualTo(2 * 12 * 3 * 2);
            assertThat(transfer.plans()).hasSize(3);
          }
          for (int row = 0; row < 12; row++) {
            assertThat(fused.getDouble(row, 2)).isEqualTo(row / 4 * 40 + row % 4 / 2);
          }
        });
  }

  @Test
  void oneSourceMayFillSeveralTargets() {
    try (LocalGroup group = LocalGroup.of(1)) {
      group.run(
          communicator -> {
            TensorSpec embedding = TensorSpec.of("embed", DType.F32, WHOLE, 3);
            Tensor source = Tensor.allocate(DType.F32, 3).copyFrom(new float[] {1, 2, 3});
            Tensor input = Tensor.allocate(DType.F32, 3);
            Tensor output = Tensor.allocate(DType.F16, 3);
            TransferBuilder builder =
                TransferBuilder.of(communicator)
                    .add(embedding, source, embedding, input)
                    .add(embedding, source, TensorSpec.of("head", DType.F16, WHOLE, 3), output);
            try (Transfer transfer = builder.register()) {
              transfer.run();
              assertThat(values(input)).containsExactly(1, 2, 3);
              assertThat(values(output)).containsExactly(1, 2, 3);
            }
          });
    }
  }

  @OnRanks(4)
  void partialTermsAreReducedAndTheSourceStays(Ranks ranks) {
    ranks.run(
        communicator -> {
          Layout partial = Layout.parse("4:P");
          Layout columns = Layout.parse("2@2:S1");
          int rank = communicator.rank();
          Tensor source = Tensor.allocate(DType.F32, 2, 4);
          source.fill(1 << rank);
          Tensor target = rank >= 2 ? Tensor.allocate(DType.F32, 2, 2) : null;
          TransferBuilder builder = TransferBuilder.of(communicator);
          builder.add("w", new long[] {2, 4}, DType.F32, partial, source, columns, target);
          try (Transfer transfer = builder.register(Duration.ofSeconds(20))) {
            transfer.run(1, Duration.ofSeconds(20));
          }
          assertThat(values(source)).containsOnly(1 << rank);
          if (target != null) {
            assertThat(values(target)).containsOnly(15);
          }
        });
  }

  @Test
  void aCoarserWireRoundsOnTheWay() {
    try (LocalGroup group = LocalGroup.of(1)) {
      Communicator communicator = group.communicator(0);
      Tensor source = Tensor.allocate(DType.F32, 1).fill(1 + 0x1p-12);
      Tensor target = Tensor.allocate(DType.F32, 1);
      Tensor count = Tensor.allocate(DType.I64, 1).fill(1L << 40);
      Tensor counted = Tensor.allocate(DType.I64, 1);
      TransferBuilder builder =
          TransferBuilder.of(communicator)
              .defaultWire(DType.BF16)
              .add("w", new long[] {1}, DType.F32, WHOLE, source, WHOLE, target)
              .add("steps", new long[] {1}, DType.I64, WHOLE, count, WHOLE, counted);
      try (Transfer transfer = builder.register()) {
        transfer.run();
      }
      assertThat(target.getDouble(0)).isEqualTo(1);
      assertThat(counted.getLong(0)).isEqualTo(1L << 40);
    }
  }

  @OnRanks({3, 4})
  void emptyPiecesNeedNoView(Ranks ranks) {
    ranks.run(
        communicator -> {
          int n = communicator.size();
          Layout rows = Layout.parse(n + ":S0");
          int rank = communicator.rank();
          Tensor source = rank == 0 ? Tensor.allocate(DType.F32, 1).fill(5) : null;
          Tensor target = Tensor.allocate(DType.F32, 1);
          TransferBuilder builder = TransferBuilder.of(communicator);
          builder.add("b", new long[] {1}, DType.F32, rows, source, Layout.parse(n + ":R"), target);
          try (Transfer transfer = builder.register()) {
            transfer.run();
          }
          assertThat(target.getDouble(0)).isEqualTo(5);
        });
  }

  @OnRanks(2)
  void differentBatchesAreAMismatch(Ranks ranks) {
    ranks.run(
        communicator -> {
          Layout rows = Layout.parse(communicator.rank() == 0 ? "2:S0" : "2:R");
          Tensor source = Tensor.allocate(DType.F32, communicator.rank() == 0 ? 1 : 2);
          Tensor target = Tensor.allocate(DType.F32, 2);
          TransferBuilder builder = TransferBuilder.of(communicator);
          builder.add("w", new long[] {2}, DType.F32, rows, source, Layout.parse("2:R"), target);
          assertThatThrownBy(builder::register)
              .isInstanceOf(MismatchException.class)
              .hasMessage(
                  "register: rank 0 adds as tensor 1 'w', f32[2] under 2:S0, to f32[2] under 2:R,"
                      + " by f32, direct, buckets of 16777216, rank 1 adds as tensor 1 'w',"
                      + " f32[2] under 2:R, to f32[2] under 2:R, by f32, direct, buckets of"
                      + " 16777216");
          communicator.barrier();
        });
  }

  @OnRanks(3)
  void aMismatchNamesTheFirstTensorThatDiffers(Ranks ranks) {
    ranks.run(
        communicator -> {
          int rank = communicator.rank();
          Layout all = Layout.parse("3:R");
          TransferBuilder builder = TransferBuilder.of(communicator);
          for (int i = 0; i < (rank == 2 ? 4 : 5); i++) {
            Tensor target = Tensor.allocate(DType.F32, 2);
            Tensor source = Tensor.allocate(DType.F32, 2);
            builder.add("w" + i, new long[] {2}, DType.F32, all, source, all, target);
          }
          assertThatThrownBy(builder::register)
              .isInstanceOf(MismatchException.class)
              .hasMessageContaining("rank 0 adds as tensor 5 'w4', f32[2] under 3:R, to ")
              .hasMessageEndingWith(", rank 2 adds no tensor 5");
          communicator.barrier();
        });
  }

  /** The ranks that the message names are the first that differ, whatever others have. */
  @OnRanks(4)
  void allRanksAreToldWhereManyDiffer(Ranks ranks) {
    ranks.run(
        communicator -> {
          int rank = communicator.rank();
          Layout all = Layout.parse("4:R");
          TransferBuilder builder = TransferBuilder.of(communicator);
          for (int i = 0; i < List.of(3, 3, 1, 0).get(rank); i++) {
            Tensor target = Tensor.allocate(DType.F32, 2);
            Tensor source = Tensor.allocate(DType.F32, 2);
            String name = rank == 1 && i == 2 ? "other" : "w" + i;
            builder.add(name, new long[] {2}, DType.F32, all, source, all, target);
          }
          assertThatThrownBy(builder::register)
              .isInstanceOf(MismatchException.class)
              .hasMessageContaining("rank 0 adds as tensor 3 'w2', ")
              .hasMessageContaining(", rank 1 adds as tensor 3 'other', ");
          communicator.barrier();
        });
  }

  /** A choice is of the tensors that are added after it. */
  @Test
  void aChoiceAfterTheLastTensorIsRefused() {
    try (LocalGroup group = LocalGroup.of(1);
        Link link = Link.open(group.communicator(0), "policy", DeviceMesh.of(1), DeviceMesh.of(1))) {
      Tensor source = Tensor.allocate(DType.F32, 4);
      Tensor target = Tensor.allocate(DType.F32, 4);
      TransferBuilder builder = TransferBuilder.of(group.communicator(0));
      builder.defaultWire(DType.BF16)
          .add("w", new long[] {4}, DType.F32, WHOLE, source, WHOLE, target);
      builder.defaultBucketBytes(4096);
      assertThatThrownBy(builder::register)
          .isInstanceOf(InvalidArgumentException.class)
          .hasMessageContaining(
              "register: defaultBucketBytes was called after the last tensor was added");
      LinkTransferBuilder linked = link.transferBuilder().defaultMode(TransferMode.STAGED);
      linked.add("w", new long[] {4}, source, WHOLE).into("w", new long[] {4}, target, WHOLE);
      linked.defaultWire(DType.BF16);
      assertThatThrownBy(linked::register)
          .isInstanceOf(InvalidArgumentException.class)
          .hasMessageContaining("register: defaultWire was called after the last tensor was added");
    }
  }

  @OnRanks(2)
  void differentVersionsAreAMismatch(Ranks ranks) {
    ranks.run(
        communicator -> {
          Tensor source = Tensor.allocate(DType.F32, 1);
          Tensor target = Tensor.allocate(DType.F32, 2);
          TransferBuilder builder = TransferBuilder.of(communicator);
          Layout rows = Layout.parse("2:S0");
          builder.add("w", new long[] {2}, DType.F32, rows, source, Layout.parse("2:R"), target);
          try (Transfer transfer = builder.register()) {
            assertThatThrownBy(() -> transfer.run(7 + communicator.rank()))
                .isInstanceOf(MismatchException.class)
                .hasMessageContaining("7")
                .hasMessageContaining("8");
          }
        });
  }

  @Test
  void aTransferKeepsItsMemory() {
    try (LocalGroup group = LocalGroup.of(1)) {
      Tensor source = Tensor.allocate(DType.F32, 4);
      Tensor target = Tensor.allocate(DType.F32, 4);
      TransferBuilder builder = TransferBuilder.of(group.communicator(0));
      builder.add("w", new long[] {4}, DType.F32, WHOLE, source, WHOLE, target);
      Transfer transfer = builder.register();
      assertThatThrownBy(builder::register).isInstanceOf(InvalidArgumentException.class);
      source.close();
      assertThatThrownBy(transfer::run).isInstanceOf(ClosedException.class);
      transfer.close();
      transfer.close();
      assertThatThrownBy(transfer::progress).isInstanceOf(ClosedException.class);
    }
  }
}
