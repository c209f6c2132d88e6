// SPDX-License-Identifier: Apache-2.0
package org.windlass;

import static java.time.Duration.ofSeconds;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collections;
import java.util.List;
import java.util.Random;
import java.util.stream.IntStream;
import java.util.stream.Stream;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.MethodSource;
import org.windlass.error.AbortedException;
import org.windlass.error.InvalidArgumentException;
import org.windlass.error.MismatchException;
import org.windlass.testing.OnRanks;
import org.windlass.testing.Ranks;

/** Communicators over some of the ranks, which share ranks with one another. */
@Timeout(120)
class OverlapTest {
  private static final int[][] PATH = {{0, 1}, {1, 2}};
  private static final int[][] STAR = {{0, 2}, {1, 2}};
  private static final int[][] TRIANGLE = {{0, 1}, {1, 2}, {2, 0}};

  /** One of several communicators over listed ranks of a parent, at one rank of it. */
  private record Domain(int[] ranks, Communicator communicator) {
    static List<Domain> all(Communicator parent, int[][] lists) {
      List<Domain> domains = new ArrayList<>();
      for (int[] ranks : lists) {
        Communicator communicator = parent.subgroup(ranks);
        boolean listed = Arrays.stream(ranks).anyMatch(rank -> rank == parent.rank());
        assertThat(communicator != null).isEqualTo(listed);
        if (listed) {
          domains.add(new Domain(ranks, communicator));
        }
      }
      return domains;
    }

    static void close(List<Domain> domains) {
      domains.forEach(domain -> domain.communicator.close());
    }

    /** Sum over its ranks of {@link #term}. */
    long sum(int number) {
      return Arrays.stream(ranks).mapToLong(rank -> term(rank, number)).sum();
    }
  }

  /** What {@code rank} of the parent adds in operation {@code number}. */
  private static long term(int rank, int number) {
    return (rank + 1) * 1_000_003L * (number + 1);
  }

  static Stream<org.junit.jupiter.params.provider.Arguments> lists() {
    return Ranks.with(new int[] {4}, "0", "2", "0,1", "2,0", "1,3,0", "3,2,1,0");
  }

  @ParameterizedTest
  @MethodSource("lists")
  void ranksAreDenseInTheOrderOfTheList(Ranks all, String list) {
    int[] ranks = Arrays.stream(list.split(",")).mapToInt(Integer::parseInt).toArray();
    all.run(
        parent -> {
          List<Domain> domains = Domain.all(parent, new int[][] {ranks});
          for (Domain domain : domains) {
            Communicator own = domain.communicator;
            assertThat(own.size()).isEqualTo(ranks.length);
            assertThat(ranks[own.rank()]).isEqualTo(parent.rank());
            Tensor gathered = Tensor.allocate(DType.I32, ranks.length);
            own.allGather(Tensor.allocate(DType.I32, 1).fill(parent.rank()), gathered);
            for (int i = 0; i < ranks.length; i++) {
              assertThat(gathered.getLong(i)).isEqualTo(ranks[i]);
              assertThat(own.rankFromParent(ranks[i])).isEqualTo(i);
            }
            assertThat(own.parentRanks()).isEqualTo(IntStream.of(ranks).boxed().toList());
          }
          Domain.close(domains);
          parent.barrier();
        });
  }

  @OnRanks({1, 3, 4})
  void ranksThatAreNoMembersAreRefusedByName(Ranks ranks) {
    ranks.run(
        whole -> {
          int last = whole.size() - 1;
          assertThat(whole.parentRanks()).isEmpty();
          assertThatThrownBy(() -> whole.rankFromParent(0))
              .isInstanceOf(InvalidArgumentException.class)
              .hasMessageContaining("was made from no other communicator");
          try (Communicator turned = whole.split(0, -whole.rank());
              Communicator ends = turned.subgroup(last)) {
            assertThat(turned.parentRanks())
                .isEqualTo(IntStream.rangeClosed(0, last).map(i -> last - i).boxed().toList());
            if (ends != null) {
              assertThat(ends.parentRanks()).containsExactly(last); // in `turned`, not in `whole`
              assertThat(ends.rankFromParent(last)).isZero();
              for (int none : new int[] {-1, last + 1, Integer.MAX_VALUE}) {
                assertThatThrownBy(() -> ends.rankFromParent(none))
                    .isInstanceOf(InvalidArgumentException.class)
                    .hasMessage(
                        "rankFromParent: rank " + none + " is not a member; the members are ranks ["
                            + last + "]");
              }
            }
          }
          whole.barrier();
        });
  }

  @OnRanks({3, 4})
  void differentListsAreAMismatch(Ranks ranks) {
    for (int[] other : new int[][] {{1, 0}, {0}, {0, 1, 2}, {0, 2}}) {
      ranks.run(
          parent ->
              assertThatThrownBy(
                      () -> parent.subgroup(parent.rank() == 2 ? other : new int[] {0, 1}))
                  .isInstanceOf(MismatchException.class)
                  .hasMessageContaining("calls subgroup("));
    }
  }

  @OnRanks(2)
  void aSubsetIsNoSplit(Ranks ranks) {
    ranks.run(
        parent ->
            assertThatThrownBy(
                    () -> {
                      if (parent.rank() == 0) {
                        parent.subgroup(0, 1);
                      } else {
                        parent.split(0, 0);
                      }
                    })
                .isInstanceOf(MismatchException.class));
  }

  /** The fourth rank, where there is one, is in none but the parent. */
  @OnRanks({3, 4})
  void oneThreadUsesSeveralAtOnce(Ranks ranks) {
    int numbers = ranks.rounds(500);
    for (int[][] lists : new int[][][] {PATH, STAR}) {
      ranks.run(
          parent -> {
            List<Domain> domains = Domain.all(parent, lists);
            List<Domain> used = new ArrayList<>(domains);
            used.add(new Domain(IntStream.range(0, parent.size()).toArray(), parent));
            for (int number = 0; number < numbers; number++) {
              for (Domain domain : used) {
                Tensor sum = Tensor.allocate(DType.I64, 5).fill(term(parent.rank(), number));
                domain.communicator.allReduce(sum, ReduceOp.SUM);
                assertThat(sum.getLong(4)).isEqualTo(domain.sum(number));
              }
            }
            Domain.close(domains);
          });
    }
  }

  /** With one queue for all its communicators, every rank would wait for the next one round. */
  @OnRanks({3, 4})
  void aCircleOfOperationsInProgressEnds(Ranks ranks) {
    ranks.run(
        parent -> {
          List<Domain> domains = Domain.all(parent, TRIANGLE);
          if (!domains.isEmpty() && domains.get(0).ranks[0] != parent.rank()) {
            Collections.reverse(domains);
          }
          List<Operation<Void>> operations = new ArrayList<>();
          for (Domain domain : domains) {
            operations.add(domain.communicator.runAsync(Collectives::barrier));
          }
          for (Operation<Void> operation : operations) {
            operation.await(ofSeconds(30));
          }
          Domain.close(domains);
        });
  }

  @OnRanks({3, 4})
  void oneThatDiesLeavesTheOthers(Ranks ranks) {
    ranks.run(
        parent -> {
          List<Domain> domains = Domain.all(parent, PATH);
          if (parent.rank() == 0) {
            domains.get(0).communicator.abort("the pair 0, 1 alone");
          } else if (parent.rank() == 1) {
            assertThatThrownBy(domains.get(0).communicator::barrier)
                .isInstanceOf(AbortedException.class);
          }
          if (parent.rank() == 1 || parent.rank() == 2) {
            domains.get(domains.size() - 1).communicator.barrier();
          }
          parent.barrier();
          Domain.close(domains);
        });
  }

  private static final int STRESS_OPERATIONS = 10_000;

  /** An operation in flight, and what shall come of it. */
  private record InFlight(Operation<Void> operation, Tensor sum, long expected) {
    void check() {
      operation.await(ofSeconds(60));
      assertThat(sum.getLong(sum.numel() - 1)).isEqualTo(expected);
      assertThat(sum.getLong(0)).isEqualTo(expected);
    }
  }

  @OnRanks({3, 4})
  void tenThousandOperationsInDifferentOrdersOnDifferentRanks(Ranks ranks) {
    long seed = new Random().nextLong();
    System.out.println("OverlapTest seed " + seed);
    int[][] lists = {{0, 1}, {1, 2}, {0, 2}, {2, 1, 0}, {1}};
    int each = ranks.rounds(STRESS_OPERATIONS / lists.length);
    ranks.run(
        parent -> {
          Random random = new Random(seed + parent.rank());
          List<Domain> domains = Domain.all(parent, lists);
          int[] submitted = new int[domains.size()];
          List<InFlight> inFlight = new ArrayList<>();
          for (int left = each * domains.size(); left > 0; left--) {
            int chosen = random.nextInt(domains.size());
            while (submitted[chosen] == each) {
              chosen = (chosen + 1) % domains.size();
            }
            int number = submitted[chosen]++;
            inFlight.add(submit(parent.rank(), domains.get(chosen), number, random.nextInt(300)));
            delay(random.nextInt(300));
          }
          inFlight.forEach(InFlight::check);
          Domain.close(domains);
        });
  }

  private static InFlight submit(int rank, Domain domain, int number, int drawn) {
    long elements = 1 + number * 7919L % 300;
    Tensor sum = Tensor.allocate(DType.I64, elements).fill(term(rank, number));
    Operation<Void> operation =
        domain.communicator.runAsync(
            c -> {
              delay(drawn);
              c.allReduce(sum, ReduceOp.SUM);
            });
    return new InFlight(operation, sum, domain.sum(number));
  }

  /** Seldom any. */
  private static void delay(int drawn) {
    if (drawn == 0) {
      try {
        Thread.sleep(1);
      } catch (InterruptedException e) {
        throw new AssertionError(e);
      }
    } else if (drawn < 10) {
      Thread.yield();
    }
  }
}
