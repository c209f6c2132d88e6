// SPDX-License-Identifier: Apache-2.0
package org.windlass.internal.transfer;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.lang.ref.Reference;
import java.util.Collections;
import java.util.HashSet;
import java.util.List;
import java.util.Random;
import java.util.Set;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.Test;
import org.windlass.Communicator;
import org.windlass.DType;
import org.windlass.LocalGroup;
import org.windlass.Tensor;
import org.windlass.error.InvalidArgumentException;
import org.windlass.internal.Native;
import org.windlass.internal.call.Endpoint;
import org.windlass.internal.memory.Memory;
import org.windlass.layout.Layout;
import org.windlass.layout.TensorSpec;
import org.windlass.plan.Plan;
import org.windlass.testing.RandomSeeds;

/** What a rank does in a transfer, as words that another one made for it. */
class TransferWordsTest {
  private static final TensorSpec ROWS =
      TensorSpec.of("w", DType.F32, Layout.parse("3:S0"), 7, 5);
  private static final TensorSpec COLUMNS =
      TensorSpec.of("w", DType.F32, Layout.parse("3:S1"), 7, 5);

  private static TransferWords.Binding binding(Tensor view) {
    Memory memory = view.memory();
    return new TransferWords.Binding(
        DType.F32.code(),
        view.address(),
        memory.address,
        memory.bytes,
        view.shape(),
        view.strides());
  }

  /** Where one rank has its parts. */
  private record Bindings(TransferWords.Binding source, TransferWords.Binding target) {}

  private static long[] words(Bindings of, Plan plan, int rank) {
    BoundTensor tensor = new BoundTensor(ROWS, null, COLUMNS, null, plan);
    return TransferWords.of(
        List.of(tensor), t -> of.source, t -> of.target, rank, new StepsMemo());
  }

  private static long create(Communicator comm, long[] words) {
    Endpoint endpoint = comm.endpoint();
    TransferConfig config = new TransferConfig(words);
    try {
      return endpoint.call(
          (out, error) ->
              Native.wl_transfer_create(endpoint.handle, config.address(), 0, out, error));
    } finally {
      Reference.reachabilityFence(config);
    }
  }

  /** Rank 0 makes them for all, of nothing but the plan and where each one's views lie. */
  @Test
  void oneRankMakesThoseOfAll() throws Exception {
    int ranks = 3;
    Plan plan = Plan.of(ROWS.layout(), COLUMNS.layout(), new long[] {7, 5}, DType.F32);
    List<CompletableFuture<Bindings>> told =
        List.of(
            new CompletableFuture<>(), new CompletableFuture<>(), new CompletableFuture<>());
    List<CompletableFuture<long[]>> made =
        List.of(
            new CompletableFuture<>(), new CompletableFuture<>(), new CompletableFuture<>());
    try (LocalGroup group = LocalGroup.of(ranks)) {
      group.run(
          comm -> {
            int rank = comm.rank();
            Tensor source = Tensor.allocate(DType.F32, ROWS.localShape(rank));
            Tensor target = Tensor.allocate(DType.F32, COLUMNS.localShape(rank));
            long firstRow = 3L * rank;
            for (int row = 0; row < source.shape()[0]; row++) {
              for (int column = 0; column < 5; column++) {
                source.setDouble(10 * (firstRow + row) + column, row, column);
              }
            }
            told.get(rank)
                .complete(new Bindings(binding(source), binding(target)));
            for (int of = 0; rank == 0 && of < ranks; of++) {
              made.get(of)
                  .complete(words(told.get(of).get(10, TimeUnit.SECONDS), plan, of));
            }
            Endpoint endpoint = comm.endpoint();
            long transfer = create(comm, made.get(rank).get(10, TimeUnit.SECONDS));
            assertThat(Native.wl_transfer_run(transfer, 1, 0, endpoint.error))
                .isEqualTo(Native.WL_OK);
            Native.wl_transfer_free(transfer);
            long firstColumn = 2L * rank;
            for (int row = 0; row < 7; row++) {
              for (int column = 0; column < target.shape()[1]; column++) {
                assertThat(target.getDouble(row, column))
                    .isEqualTo(10 * row + firstColumn + column);
              }
            }
            Reference.reachabilityFence(source);
            Reference.reachabilityFence(target);
          });
    }
  }

  /** What is memorised is what is computed, of as many as it keeps, whatever the order. */
  @RandomSeeds(2)
  void aMemoHasTheStepsOfThePlans(long seed) {
    Random random = new Random(seed);
    StepsMemo memo = new StepsMemo();
    TransferWords.Binding none =
        new TransferWords.Binding(DType.F32.code(), 0, 0, 0, new long[1], new long[1]);
    Set<List<Long>> different = new HashSet<>();
    for (int i = 0; i < 60; i++) {
      long rows = 1 + random.nextInt(3);
      int rank = random.nextInt(3);
      Plan plan =
          Plan.of(ROWS.layout(), COLUMNS.layout(), new long[] {rows, 5}, DType.F32);
      List<BoundTensor> tensors =
          Collections.nCopies(
              1 + random.nextInt(2), new BoundTensor(ROWS, null, COLUMNS, null, plan));
      different.add(List.of(rows, (long) rank, (long) tensors.size()));
      assertThat(TransferWords.of(tensors, t -> none, t -> none, rank, memo))
          .isEqualTo(TransferWords.of(tensors, t -> none, t -> none, rank, new StepsMemo()));
    }
    assertThat(memo.computed()).isEqualTo(different.size());
  }

  /** The native side holds every word against the views that it names. */
  @Test
  void thoseOfAnotherRankAreRefused() {
    Plan plan = Plan.of(ROWS.layout(), COLUMNS.layout(), new long[] {7, 5}, DType.F32);
    try (LocalGroup group = LocalGroup.of(3)) {
      group.run(
          comm -> {
            int rank = comm.rank();
            Tensor source = Tensor.allocate(DType.F32, ROWS.localShape(rank));
            Tensor target = Tensor.allocate(DType.F32, COLUMNS.localShape(rank));
            Bindings bindings = new Bindings(binding(source), binding(target));
            long[] words = words(bindings, plan, rank == 2 ? 0 : rank);
            assertThatThrownBy(() -> create(comm, words))
                .isInstanceOf(InvalidArgumentException.class)
                .hasMessageContaining("rank 2's part of the transfer");
          });
    }
  }
}
