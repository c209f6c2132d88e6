// SPDX-License-Identifier: Apache-2.0
package org.windlass.etcd;

import static org.assertj.core.api.Assertions.assertThat;

import java.time.Duration;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.windlass.Communicator;
import org.windlass.CommunicatorOptions;
import org.windlass.DType;
import org.windlass.ReduceOp;
import org.windlass.Tensor;
import org.windlass.Window;
import org.windlass.WindlassException;

/** Processes that start a communicator through etcd. */
@Timeout(180)
class EtcdStartTest {
  private static final Duration LONG = Duration.ofSeconds(60);

  /** A rank: two communicators, one after the other, whose ranks add up their own. */
  static final class Rank {
    public static void main(String[] arguments) {
      for (int i = 0; i < 2; i++) {
        try (Communicator comm =
                Communicator.fromEnvironment(CommunicatorOptions.defaults(), LONG);
            Window window = comm.window(64)) {
          Tensor sum = window.tensor(DType.I32, 1);
          sum.asByteBuffer().asIntBuffer().put(comm.rank() + 1);
          comm.allReduce(sum, sum, ReduceOp.SUM);
          System.out.println("sum " + sum.asByteBuffer().asIntBuffer().get());
        }
      }
    }
  }

  /** A rank that says why it could not start within some seconds. */
  static final class Alone {
    public static void main(String[] arguments) {
      try (Communicator comm =
          Communicator.fromEnvironment(CommunicatorOptions.defaults(), Duration.ofSeconds(10))) {
        System.out.println("met " + comm);
      } catch (WindlassException e) {
        System.out.println("failed " + e.culprits() + " " + e.code() + ": " + e.getMessage());
      }
    }
  }

  private static Map<String, String> variables(Etcd etcd, int rank, String job) {
    Map<String, String> variables = new HashMap<>();
    variables.put("WINDLASS_RANK", String.valueOf(rank));
    variables.put("WINDLASS_WORLD_SIZE", "2");
    variables.put("WINDLASS_JOB", job);
    variables.put("WINDLASS_RENDEZVOUS", etcd.address());
    return variables;
  }

  @Test
  void processesMeetAndLeaveNothing() throws Exception {
    List<Child> ranks = new ArrayList<>();
    try (Etcd etcd = new Etcd()) {
      for (int rank = 1; rank >= 0; rank--) {
        // Jobs of one name that two tokens tell apart.
        for (String token : List.of("ab", "cd")) {
          Map<String, String> variables = variables(etcd, rank, "meets");
          variables.put("WINDLASS_TOKEN", token.repeat(32));
          ranks.add(new Child(Rank.class, variables));
        }
      }
      for (Child rank : ranks) {
        assertThat(rank.line("sum")).isEqualTo("sum 3");
        assertThat(rank.line("sum")).isEqualTo("sum 3");
        rank.awaitEnd();
      }
      assertThat(etcd.keys(Etcd.PREFIX)).isEmpty();
    } finally {
      ranks.forEach(Child::close);
    }
  }

  @Test
  void aRankThatDoesNotComeIsNamed() throws Exception {
    try (Etcd etcd = new Etcd();
        Child zero = new Child(Alone.class, variables(etcd, 0, "alone"));
        Child one = new Child(Alone.class, variables(etcd, 1, "another"))) {
      assertThat(zero.line("failed"))
          .startsWith("failed [1] Timeout")
          .contains("rank 1 of 2 had not come to " + etcd.address());
      assertThat(one.line("failed"))
          .startsWith("failed [0] Timeout")
          .contains("rank 0", etcd.address());
      zero.awaitEnd();
      one.awaitEnd();
      assertThat(etcd.keys(Etcd.PREFIX)).isEmpty();
    }
  }
}
