// SPDX-License-Identifier: Apache-2.0
package org.windlass.experts;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import com.sun.management.ThreadMXBean;
import java.lang.management.ManagementFactory;
import java.time.Duration;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.windlass.CommunicatorOptions;
import org.windlass.DType;
import org.windlass.LocalGroup;
import org.windlass.Operation;
import org.windlass.Tensor;
import org.windlass.error.ClosedException;
import org.windlass.error.DeadlineExceededException;
import org.windlass.error.InvalidArgumentException;
import org.windlass.error.MismatchException;
import org.windlass.error.UnsupportedException;
import org.windlass.testing.OnRanks;
import org.windlass.testing.Ranks;

/** What experts refuse, by name, and how they are called. */
@Timeout(60)
class ExpertCallsTest {
  private static final ExpertOptions OPTIONS = ExpertOptions.of(4, 2, 8, 3, DType.F32);

  @OnRanks(2)
  void anIdOfNoExpertIsNamedWithTokenAndRank(Ranks ranks) {
    ranks.run(
        comm -> {
          try (var experts = ExpertParallel.open(comm, OPTIONS);
              var routing = experts.routing();
              var tokens = Tensor.allocate(DType.F32, 3, 8);
              var ids = Tensor.allocate(DType.I64, 3, 2)) {
            ids.copyFrom(new long[] {0, 1, 2, -1, 3, 4});
            String rank = "dispatch: rank " + comm.rank() + ": ";
            assertThatThrownBy(() -> experts.dispatch(routing, tokens, ids, null))
                .isInstanceOf(InvalidArgumentException.class)
                .hasMessage(
                    rank + "token 2 names expert 4 in slot 1; experts are 0 to 3, and -1 is none");
            ids.copyFrom(new long[] {0, 1, -2, -1, 3, 2});
            assertThatThrownBy(() -> experts.dispatch(routing, tokens, ids, null))
                .hasMessageContaining(rank + "token 1 names expert -2 in slot 0");
            ids.copyFrom(new long[] {0, 1, 2, 2, 3, 1});
            assertThatThrownBy(() -> experts.dispatch(routing, tokens, ids, null))
                .hasMessage(
                    rank + "token 1 names expert 2 twice, again in slot 1; a token goes to an expert"
                        + " once");
            assertThatThrownBy(() -> experts.dispatch(routing, tokens))
                .hasMessageContaining("state their experts");
            assertThatThrownBy(() -> experts.combine(routing, tokens))
                .hasMessageContaining("no dispatch has given the tokens of rank");
            ids.copyFrom(new long[] {0, 1, 2, -1, 3, 0});
            experts.dispatch(routing, tokens, ids, null); // nothing has been sent before
          }
        });
  }

  @OnRanks({2, 3})
  void tooFewRowsAreRefusedOnAllRanksAndNothingMoves(Ranks ranks) {
    ranks.run(
        comm -> {
          int n = comm.size();
          ExpertOptions options =
              ExpertOptions.of(2 * n, 1, 4, 4, DType.F32).withAlignment(4).withRows(4);
          try (var experts = ExpertParallel.open(comm, options);
              var routing = experts.routing();
              var tokens = Tensor.allocate(DType.F32, 4, 4).fill(7);
              var ids = Tensor.allocate(DType.I32, 4, 1).fill(0L)) {
            experts.rows().fill(-1);
            comm.barrier();
            assertThatThrownBy(() -> experts.dispatch(routing, tokens, ids, null))
                .isInstanceOf(InvalidArgumentException.class)
                .hasMessageContaining(
                    "the experts of rank 0 get " + 4 * n + " rows, with what alignment to 4 adds, and"
                        + " it has room for 4; nothing has moved");
            assertThat(experts.rows().getDouble(0, 0)).isEqualTo(-1);
            // The communicator goes on.
            ids.fill((long) comm.rank() * 2);
            experts.dispatch(routing, tokens, ids, null);
            assertThat(routing.count(0)).isEqualTo(4);
            assertThat(routing.received()).isEqualTo(4);
            assertThat(experts.rows().getDouble(3, 3)).isEqualTo(7);
          }
        });
  }

  @OnRanks(2)
  void ranksThatOpenWithOtherOptionsAreToldAlike(Ranks ranks) {
    ranks.run(
        comm -> {
          ExpertOptions own = comm.rank() == 1 ? ExpertOptions.of(4, 2, 16, 3, DType.F32) : OPTIONS;
          assertThatThrownBy(() -> ExpertParallel.open(comm, own))
              .isInstanceOf(InvalidArgumentException.class)
              .hasMessage(
                  "experts: rank 1 has hidden 16, rank 0 has hidden 8; open them with the same options on all ranks");
          assertThatThrownBy(() -> ExpertParallel.open(comm, ExpertOptions.of(3, 1, 1, 1, DType.F32)))
              .hasMessage(
                  "experts: there are 3 for 2 ranks; the number must be a multiple of the number of ranks");
          assertThatThrownBy(
                  () -> ExpertParallel.open(comm, ExpertOptions.of(4, 2, 8, 3, DType.I32)))
              .isInstanceOf(UnsupportedException.class)
              .hasMessageContaining("tokens are floats");
          assertThatThrownBy(
                  () -> ExpertParallel.open(comm, ExpertOptions.of(8192, 64, 1, 1 << 22, DType.F32)
                              .withAlignment(1 << 20)))
              .isInstanceOf(InvalidArgumentException.class)
              .hasMessageContaining("up to 4831834112 rows can arrive at a rank")
              .hasMessageContaining("set the number of rows with withRows");
          assertThatThrownBy(() -> ExpertOptions.of(2, 8, 8, 3, DType.F32))
              .hasMessage("experts: topK is 8; it must lie in [1, 2]");
          assertThatThrownBy(() -> ExpertOptions.of(4, 2, 8, Long.MAX_VALUE, DType.F32))
              .hasMessage(
                  "experts: tokens is 9223372036854775807; it must lie in [1, 4194304]");
        });
  }

  @OnRanks(2)
  void ranksThatRouteAnewAndAsBeforeDisagree(Ranks ranks) {
    ranks.run(
        comm -> {
          try (var experts = ExpertParallel.open(comm, OPTIONS);
              var routing = experts.routing();
              var tokens = Tensor.allocate(DType.F32, 3, 8);
              var ids = Tensor.allocate(DType.I64, 3, 2).fill(-1L)) {
            experts.dispatch(routing, tokens, ids, null);
            assertThatThrownBy(
                    () -> {
                      if (comm.rank() == 0) {
                        experts.dispatch(routing, tokens);
                      } else {
                        experts.dispatch(routing, tokens, ids, null);
                      }
                      comm.barrier();
                    })
                .isInstanceOf(MismatchException.class)
                .hasMessageContaining("expert-dispatch(f32, routed anew, routing ")
                .hasMessageContaining("expert-dispatch(f32, routed as before, routing ");
          }
        });
  }

  @OnRanks(2)
  void ranksThatUseDifferentRoutingsDisagree(Ranks ranks) {
    ranks.run(
        comm -> {
          try (var experts = ExpertParallel.open(comm, OPTIONS);
              var others = ExpertParallel.open(comm, OPTIONS);
              var first = experts.routing();
              var elsewhere = others.routing();
              var second = experts.routing();
              var tokens = Tensor.allocate(DType.F32, 3, 8);
              var ids = Tensor.allocate(DType.I64, 3, 2).fill(-1L)) {
            experts.dispatch(first, tokens, ids, null);
            experts.dispatch(second, tokens, ids, null);
            assertThatThrownBy(() -> experts.combine(first, tokens))
                .isInstanceOf(InvalidArgumentException.class)
                .hasMessageContaining("rows hold the data of a later dispatch by another routing");
            experts.combine(second, tokens);
            others.dispatch(elsewhere, tokens, ids, null);
            assertThatThrownBy(
                    () -> {
                      if (comm.rank() == 0) {
                        experts.dispatch(second, tokens);
                      } else {
                        others.dispatch(elsewhere, tokens);
                      }
                      comm.barrier();
                    })
                .isInstanceOf(MismatchException.class)
                .hasMessageContaining("expert-dispatch(f32, routed as before, routing ");
          }
        });
  }

  @OnRanks(2)
  void anotherDeadlineHolds(Ranks ranks) {
    ranks.run(
        comm -> {
          try (var experts = ExpertParallel.open(comm, OPTIONS);
              var routing = experts.routing();
              var tokens = Tensor.allocate(DType.F32, 3, 8);
              var ids = Tensor.allocate(DType.I64, 3, 2).fill(-1L)) {
            experts.withDeadline(Duration.ofSeconds(20)).dispatch(routing, tokens, ids, null);
            comm.barrier();
            if (comm.rank() == 0) {
              assertThatThrownBy(
                      () -> experts.withDeadline(Duration.ofMillis(50)).combine(routing, tokens))
                  .isInstanceOf(DeadlineExceededException.class)
                  .hasMessageContaining("expert-combine");
            }
          }
        });
  }

  @Test
  void aRankThatDoesNotOpenIsNamedInWhatOthersCalled() {
    CommunicatorOptions brief = CommunicatorOptions.defaults().withDeadline(Duration.ofMillis(100));
    try (var group = LocalGroup.of(2, brief)) {
      assertThatThrownBy(() -> ExpertParallel.open(group.communicator(0), OPTIONS))
          .isInstanceOf(DeadlineExceededException.class)
          .hasMessageContaining("s in experts open, operation #1 on 2 ranks: rank 1 has not come")
          .hasMessageNotContaining("gather");
    }
  }

  @Test
  void tensorsThatDoNotFitAreNamed() {
    try (var group = LocalGroup.of(1)) {
      group.run(
          comm -> {
            try (var experts = ExpertParallel.open(comm, OPTIONS);
                var other = ExpertParallel.open(comm, OPTIONS);
                var routing = experts.routing();
                var foreign = other.routing();
                var window = comm.window(4096);
                var ids = Tensor.allocate(DType.I64, 3, 2).fill(0L)) {
              refused(experts, routing, Tensor.allocate(DType.F32, 3, 9), ids, "tokens is ");
              refused(experts, routing, Tensor.allocate(DType.BF16, 3, 8), ids, "[n, 8] of f32");
              refused(experts, routing, Tensor.allocate(DType.F32, 2, 8), ids, "[2, 2] of i64");
              Tensor tokens = Tensor.allocate(DType.F32, 3, 8);
              refused(experts, routing, tokens, Tensor.allocate(DType.F32, 3, 2), "be followed by weights");
              refused(experts, foreign, tokens, ids, "routing belongs to other experts");
              Tensor many = Tensor.allocate(DType.F32, 4, 8);
              Tensor of4 = Tensor.allocate(DType.I64, 4, 2).fill(-1L);
              refused(experts, routing, many, of4, "brings 4 tokens; it has room for 3");
              ids.copyFrom(new long[] {0, 1, 2, 3, 0, -1});
              refused(
                  experts, routing, experts.rows().narrow(0, 0, 3), ids, "lie among the rows");
              experts.dispatch(routing, tokens, ids, null);
              assertThatThrownBy(() -> experts.combine(routing, Tensor.allocate(DType.F32, 2, 8)))
                  .hasMessageContaining("out of rank 0 has 2 tokens, and the dispatch brought 3");
              assertThatThrownBy(
                      () -> experts.combine(routing, window.tensor(DType.F32, 3, 8), tokens))
                  .hasMessageContaining("outputs is ");
              assertThatThrownBy(() -> experts.dispatch(routing, many))
                  .hasMessageContaining("brings 4 tokens, and experts of 3 have been stated");
              assertThatThrownBy(experts::scales).hasMessageContaining("only quantised ones");
              assertThatThrownBy(() -> routing.count(4))
                  .hasMessage(
                      "localExpert is 4; it must lie in [0, 4), and stands for experts 0 to 3");
              end(tokens);
              assertThatThrownBy(() -> experts.dispatch(routing, tokens, ids, null))
                  .isInstanceOf(ClosedException.class)
                  .hasMessageContaining("dispatch: tokens (");
              end(routing);
              assertThatThrownBy(
                      () -> experts.dispatch(routing, Tensor.allocate(DType.F32, 3, 8), ids, null))
                  .isInstanceOf(ClosedException.class)
                  .hasMessage("dispatch: the ExpertRouting is closed");
              end(experts);
              Tensor others = Tensor.allocate(DType.F32, 3, 8);
              assertThatThrownBy(() -> experts.dispatch(routing, others, ids, null))
                  .isInstanceOf(ClosedException.class)
                  .hasMessage("dispatch: the ExpertParallel is closed");
              assertThatThrownBy(() -> experts.combine(routing, others))
                  .isInstanceOf(ClosedException.class)
                  .hasMessage("combine: the ExpertParallel is closed");
            }
          });
    }
  }

  private static void end(AutoCloseable thing) {
    try {
      thing.close();
    } catch (Exception e) {
      throw new AssertionError(e);
    }
  }

  private static void refused(
      ExpertParallel experts, ExpertRouting routing, Tensor tokens, Tensor ids, String what) {
    assertThatThrownBy(() -> experts.dispatch(routing, tokens, ids, null))
        .isInstanceOf(InvalidArgumentException.class)
        .hasMessageContaining(what);
  }

  @OnRanks({2, 4})
  void computationGoesOnBetweenTheHalves(Ranks ranks) {
    ranks.run(
        comm -> {
          ExpertOptions options = ExpertOptions.of(comm.size(), 1, 4, 2, DType.F32);
          try (var experts = ExpertParallel.open(comm, options);
              var routing = experts.routing();
              var tokens = Tensor.allocate(DType.F32, 2, 4).fill(comm.rank() + 1);
              var sums = Tensor.allocate(DType.F32, 2, 4);
              var ids = Tensor.allocate(DType.I64, 2, 1).fill((comm.rank() + 1L) % comm.size())) {
            Operation<Void> coming = experts.dispatchAsync(routing, tokens, ids, null);
            double computed = Math.sqrt(comm.rank());
            coming.await();
            int from = (comm.rank() + comm.size() - 1) % comm.size();
            assertThat(routing.rows(0).getDouble(1, 3)).isEqualTo(from + 1);
            Operation<Void> summed = experts.combineAsync(routing, experts.rows(), sums);
            assertThat(computed * computed).isBetween(comm.rank() - 0.01, comm.rank() + 0.01);
            summed.await();
            assertThat(sums.getDouble(1, 3)).isEqualTo(comm.rank() + 1);
            experts.dispatchAsync(routing, tokens).await();
          }
        });
  }

  @Test
  void nothingIsAllocatedOnceItRuns() {
    var threads = (ThreadMXBean) ManagementFactory.getThreadMXBean();
    try (var group = LocalGroup.of(1)) {
      group.run(
          comm -> {
            try (var experts = ExpertParallel.open(comm, OPTIONS);
                var routing = experts.routing();
                var tokens = Tensor.allocate(DType.F32, 3, 8);
                var ids = Tensor.allocate(DType.I64, 3, 2).fill(-1L);
                var weights = Tensor.allocate(DType.F32, 3, 2)) {
              long allocated = Long.MAX_VALUE;
              int calls = 10_000;
              for (int round = 0; round < 5 && allocated >= calls; round++) {
                long before = threads.getCurrentThreadAllocatedBytes();
                for (int i = 0; i < calls; i++) {
                  experts.dispatch(routing, tokens, ids, weights);
                  experts.combine(routing, tokens);
                  experts.dispatch(routing, tokens);
                }
                allocated = threads.getCurrentThreadAllocatedBytes() - before;
              }
              assertThat(allocated).isLessThan(calls);
            }
          });
    }
  }
}
