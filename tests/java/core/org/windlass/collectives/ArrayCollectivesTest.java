// SPDX-License-Identifier: Apache-2.0
package org.windlass.collectives;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.util.Arrays;
import java.util.Random;
import java.util.stream.IntStream;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.MethodSource;
import org.windlass.ArrayCollectives;
import org.windlass.Communicator;
import org.windlass.LocalGroup;
import org.windlass.Operation;
import org.windlass.ReduceOp;
import org.windlass.error.InvalidArgumentException;
import org.windlass.error.MismatchException;
import org.windlass.error.UnsupportedException;
import org.windlass.testing.OnRanks;
import org.windlass.testing.Ranks;

/** Collectives of Java arrays against plain loops: launches x ranks x lengths x types. */
class ArrayCollectivesTest {
  private static final int[] LENGTHS = {0, 1, 3, 100, 20_000};

  static Stream<org.junit.jupiter.params.provider.Arguments> cases() {
    return Ranks.everywhereWith(new int[] {1, 2, 3, 4, 8}, LENGTHS[0], LENGTHS[3], LENGTHS[4]);
  }

  /** What {@code rank} has at {@code index}: small, so that sums are exact. */
  private static int value(int rank, int index) {
    return (rank * 37 + index * 11) % 1_000 - 300;
  }

  private static int[] values(int rank, int length) {
    return IntStream.range(0, length).map(i -> value(rank, i)).toArray();
  }

  private static float[] floats(int[] values) {
    float[] floats = new float[values.length];
    for (int i = 0; i < values.length; i++) {
      floats[i] = values[i] / 4f;
    }
    return floats;
  }

  private static double[] doubles(int[] values) {
    return Arrays.stream(values).mapToDouble(i -> i / 8.0).toArray();
  }

  private static long[] longs(int[] values) {
    return Arrays.stream(values).mapToLong(i -> i * (1L << 40)).toArray();
  }

  @ParameterizedTest
  @MethodSource("cases")
  void matchPlainLoops(Ranks ranks, int most) {
    ranks.run(
        comm -> {
          for (int length : LENGTHS) {
            if (length <= most) {
              equalLengths(comm, length);
            }
          }
        });
  }

  private static void equalLengths(Communicator comm, int length) {
    int n = comm.size();
    int rank = comm.rank();
    int root = n - 1;
    int[] own = values(rank, n * length);
    int[] sums = new int[n * length];
    int[] gathered = new int[n * n * length];
    int[] exchanged = new int[n * length];
    for (int from = 0; from < n; from++) {
      for (int i = 0; i < n * length; i++) {
        sums[i] += value(from, i);
        gathered[from * n * length + i] = value(from, i);
      }
      for (int i = 0; i < length; i++) {
        exchanged[from * length + i] = value(from, rank * length + i);
      }
    }
    int[] part = Arrays.copyOfRange(sums, rank * length, (rank + 1) * length);

    float[] floats = floats(own);
    assertThat(comm.allGather(floats)).isEqualTo(floats(gathered));
    assertThat(comm.reduceScatter(floats, ReduceOp.SUM)).isEqualTo(floats(part));
    assertThat(comm.allToAll(floats)).isEqualTo(floats(exchanged));
    assertThat(floats).isEqualTo(floats(own));
    comm.allReduce(floats, ReduceOp.SUM);
    assertThat(floats).isEqualTo(floats(sums));
    floats = floats(own);
    comm.broadcast(floats, root);
    assertThat(floats).isEqualTo(floats(values(root, n * length)));

    double[] doubles = doubles(own);
    assertThat(comm.allGather(doubles)).isEqualTo(doubles(gathered));
    assertThat(comm.reduceScatter(doubles, ReduceOp.SUM)).isEqualTo(doubles(part));
    assertThat(comm.allToAll(doubles)).isEqualTo(doubles(exchanged));
    comm.allReduce(doubles, ReduceOp.SUM);
    assertThat(doubles).isEqualTo(doubles(sums));
    doubles = doubles(own);
    comm.broadcast(doubles, root);
    assertThat(doubles).isEqualTo(doubles(values(root, n * length)));

    int[] ints = own.clone();
    assertThat(comm.allGather(ints)).isEqualTo(gathered);
    assertThat(comm.reduceScatter(ints, ReduceOp.SUM)).isEqualTo(part);
    assertThat(comm.allToAll(ints)).isEqualTo(exchanged);
    comm.allReduce(ints, ReduceOp.SUM);
    assertThat(ints).isEqualTo(sums);
    ints = own.clone();
    comm.broadcast(ints, root);
    assertThat(ints).isEqualTo(values(root, n * length));

    long[] longs = longs(own);
    assertThat(comm.allGather(longs)).isEqualTo(longs(gathered));
    assertThat(comm.reduceScatter(longs, ReduceOp.SUM)).isEqualTo(longs(part));
    assertThat(comm.allToAll(longs)).isEqualTo(longs(exchanged));
    comm.allReduce(longs, ReduceOp.SUM);
    assertThat(longs).isEqualTo(longs(sums));
    longs = longs(own);
    comm.broadcast(longs, root);
    assertThat(longs).isEqualTo(longs(values(root, n * length)));
  }

  /** Bytes that any rank can make of a seed. */
  private static byte[] bytes(long seed, int rank, int most) {
    Random random = new Random(seed + rank);
    byte[] bytes = new byte[random.nextInt(4) == 0 ? 0 : random.nextInt(most)];
    random.nextBytes(bytes);
    return bytes;
  }

  @ParameterizedTest
  @MethodSource("cases")
  void bytesHaveAnyLength(Ranks ranks, int most) {
    long seed = new Random().nextInt();
    ranks.run(
        comm -> {
          for (int round = 0; round < 6; round++) {
            long own = seed + 1_000 * round;
            int bound = round == 0 ? 1 : most * 40 + 3;
            byte[][] all = comm.allGather(bytes(own, comm.rank(), bound));
            assertThat(all).hasNumberOfRows(comm.size());
            for (int rank = 0; rank < comm.size(); rank++) {
              assertThat(all[rank])
                  .as("round %d of seed %d, rank %d", round, seed, rank)
                  .isEqualTo(bytes(own, rank, bound));
            }
            int root = round % comm.size();
            byte[] given = bytes(own, root, bound);
            byte[] got = comm.broadcast(comm.rank() == root ? given : null, root);
            assertThat(got).as("round %d of seed %d", round, seed).isEqualTo(given);
            if (got.length > 0) {
              got[0]++; // a copy, on the root too
              assertThat(got[0]).isNotEqualTo(given[0]);
            }
          }
        });
  }

  @Test
  void runInOrderFromAsynchronousCallsAndVirtualThreads() throws Exception {
    try (LocalGroup group = LocalGroup.of(2)) {
      group.run(
          comm -> {
            float[] sums = {comm.rank(), 1};
            Operation<Void> summed = comm.runAsync(c -> c.allReduce(sums, ReduceOp.SUM));
            Operation<byte[][]> gathered =
                comm.supplyAsync(c -> c.allGather(new byte[] {(byte) comm.rank()}));
            byte[] got = comm.broadcast(comm.rank() == 1 ? new byte[] {1, 2, 3} : null, 1);
            assertThat(got).containsExactly(1, 2, 3);
            summed.await();
            assertThat(sums).containsExactly(1, 2);
            assertThat(gathered.await()).isDeepEqualTo(new byte[][] {{0}, {1}});
          });
    }
  }

  @OnRanks(2)
  void wrongCallsAreRefused(Ranks ranks) {
    ranks.run(
        comm -> {
          refused(() -> comm.reduceScatter(new int[3], ReduceOp.SUM), "reduceScatter: in has 3");
          refused(() -> comm.allToAll(new long[3]), "allToAll: in has 3 elements");
          refused(() -> comm.broadcast(new float[1], 2), "broadcast: root is 2");
          refused(() -> comm.broadcast(new byte[1], -1), "broadcast: root is -1");
          int tooLong = ArrayCollectives.MOST_BYTES + 1;
          refused(
              () -> comm.allGather(new byte[tooLong]), "allGather: value has 67108865 bytes");
          assertThatThrownBy(() -> comm.allReduce(new int[2], ReduceOp.AVG))
              .isInstanceOf(UnsupportedException.class)
              .hasMessageContainingAll("allReduce", "i32", "avg");
          missing(() -> comm.allReduce((float[]) null, ReduceOp.SUM), "values");
          missing(() -> comm.allReduce(new float[1], null), "op");
          missing(() -> comm.allGather((double[]) null), "values");
          missing(() -> comm.allGather((byte[]) null), "value");
          missing(() -> comm.broadcast((byte[]) null, comm.rank()), "value");
          comm.barrier();
        });
  }

  @OnRanks(2)
  void ranksThatDifferInLengthAreTold(Ranks ranks) {
    ranks.run(
        comm ->
            assertThatThrownBy(
                    () -> {
                      comm.allReduce(new double[3 + comm.rank()], ReduceOp.SUM);
                      comm.barrier();
                    })
                .isInstanceOf(MismatchException.class)
                .hasMessageContainingAll("3 x f64", "4 x f64"));
  }

  private static void refused(Runnable call, String part) {
    assertThatThrownBy(call::run)
        .isInstanceOf(InvalidArgumentException.class)
        .hasMessageContaining(part);
  }

  private static void missing(Runnable call, String name) {
    assertThatThrownBy(call::run).isInstanceOf(NullPointerException.class).hasMessage(name);
  }
}
