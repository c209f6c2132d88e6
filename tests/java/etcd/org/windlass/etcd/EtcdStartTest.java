// SPDX-License-Identifier: Apache-2.0
package org.windlass.etcd;

import static org.assertj.core.api.Assertions.assertThat;

import java.time.Duration;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.FutureTask;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.windlass.Communicator;
import org.windlass.CommunicatorOptions;
import org.windlass.DType;
import org.windlass.LocalGroup;
import org.windlass.ReduceOp;
import org.windlass.Tensor;
import org.windlass.Window;
import org.windlass.error.DeadlineExceededException;
import org.windlass.error.WindlassException;
import org.windlass.internal.store.StoreTest;

/** Processes that start a communicator through etcd. */
@Timeout(180)
class EtcdStartTest {
  private static final Duration LONG = Duration.ofSeconds(60);

  /**
   * A rank of two jobs of one name, which two tokens tell apart. In each there are two communicators,
   * one after the other, whose ranks add up their own.
   */
  static final class Rank {
    /** The argument is the token of the second job; the first one is that of the environment. */
    public static void main(String[] arguments) throws Exception {
      Etcd.load(System.getenv("WINDLASS_RENDEZVOUS"));
      Map<String, String> second = new HashMap<>(System.getenv());
      second.put("WINDLASS_TOKEN", arguments[0]);
      FutureTask<Void> beside =
          new FutureTask<>(
              () -> {
                for (int i = 0; i < 2; i++) {
                  try (LocalGroup group = join(second, LONG)) {
                    group.run(Rank::add);
                  }
                }
                return null;
              });
      new Thread(beside, "second-job").start();
      for (int i = 0; i < 2; i++) {
        try (Communicator comm = Communicator.fromEnvironment(CommunicatorOptions.defaults(), LONG)) {
          add(comm);
        }
      }
      beside.get();
    }

    private static void add(Communicator comm) {
      try (Window window = comm.window(64)) {
        Tensor sum = window.tensor(DType.I32, 1);
        sum.asByteBuffer().asIntBuffer().put(comm.rank() + 1);
        comm.allReduce(sum, sum, ReduceOp.SUM);
        System.out.println("sum " + sum.asByteBuffer().asIntBuffer().get());
      }
    }
  }

  private static LocalGroup join(Map<String, String> variables, Duration deadline) {
    return LocalGroup.fromEnvironment(variables, 1, CommunicatorOptions.defaults(), deadline);
  }

  private static Map<String, String> variables(String address, int rank, String job) {
    Map<String, String> variables = new HashMap<>();
    variables.put("WINDLASS_RANK", String.valueOf(rank));
    variables.put("WINDLASS_WORLD_SIZE", "2");
    variables.put("WINDLASS_JOB", job);
    variables.put("WINDLASS_RENDEZVOUS", address);
    return variables;
  }

  @Test
  void processesStartAndLeaveNothing() throws Exception {
    Etcd etcd = Etcd.shared();
    List<Child> ranks = new ArrayList<>();
    try {
      for (int rank = 1; rank >= 0; rank--) {
        Map<String, String> variables = variables(etcd.address() + "-starts", rank, "starts");
        variables.put("WINDLASS_TOKEN", "ab".repeat(32));
        ranks.add(new Child(Rank.class, variables, "cd".repeat(32)));
      }
      for (Child rank : ranks) {
        for (int i = 0; i < 4; i++) {
          assertThat(rank.line("sum")).isEqualTo("sum 3");
        }
        rank.awaitEnd();
      }
      assertThat(etcd.keys(Etcd.PREFIX + "-starts")).isEmpty();
    } finally {
      ranks.forEach(Child::close);
    }
  }

  /** A busy machine may need more time to reach etcd: the next start has twice as much. */
  @Test
  void aRankThatDoesNotComeIsNamed() throws Exception {
    Etcd etcd = Etcd.shared();
    String address = etcd.address() + "-alone";
    for (Duration limit = Duration.ofSeconds(2); ; limit = limit.multipliedBy(2)) {
      Duration now = limit;
      FutureTask<WindlassException> zero =
          StoreTest.start(() -> refusal(variables(address, 0, "alone"), now));
      WindlassException one = refusal(variables(address, 1, "another"), limit);
      String missing = "rank 1 of 2 had not joined at " + address;
      boolean isReached =
          zero.get().getMessage().contains(missing) && one.getMessage().contains("rank 0");
      if (!isReached && limit.compareTo(LONG) < 0) {
        continue;
      }
      assertThat(zero.get()).isInstanceOf(DeadlineExceededException.class);
      assertThat(zero.get()).hasMessageContaining(missing);
      assertThat(one).isInstanceOf(DeadlineExceededException.class);
      assertThat(zero.get().faultyRanks()).containsExactly(1);
      assertThat(one).hasMessageContaining("rank 0").hasMessageContaining(address);
      assertThat(one.faultyRanks()).containsExactly(0);
      assertThat(etcd.keys(Etcd.PREFIX + "-alone")).isEmpty();
      return;
    }
  }

  /** Why a rank could not start in that time. */
  private static WindlassException refusal(Map<String, String> variables, Duration limit) {
    try (LocalGroup group = join(variables, limit)) {
      throw new AssertionError("connected " + group);
    } catch (WindlassException e) {
      return e;
    }
  }
}
