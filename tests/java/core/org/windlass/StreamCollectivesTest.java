// SPDX-License-Identifier: Apache-2.0
package org.windlass;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.stream.IntStream;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;
import org.windlass.error.InvalidArgumentException;
import org.windlass.error.UnsupportedException;
import org.windlass.testing.CudaStandIn;
import org.windlass.testing.OnRanks;
import org.windlass.testing.Ranks;
import org.windlass.testing.TestClasses;

/** Collectives on the default streams of GPUs, over the stand-in for NVIDIA's driver. */
@Tag("devices")
@Timeout(180)
class StreamCollectivesTest {
  private static final int RANKS = 4;
  private static final int COUNT = 1000;
  private static final int TIMES = 70; // more than are in flight
  private static final Duration LIMIT = Duration.ofSeconds(60);

  @TempDir Path folder;

  @ParameterizedTest
  @ValueSource(ints = {1, 3})
  void areOverInTheirOrder(int devices) throws Exception {
    String tests = OnGpus.class.getName();
    assertThat(CudaStandIn.run(folder, devices, true, TestClasses.class, tests))
        .containsPattern("(?m)^[1-9]\\d* tests passed on cuda$");
  }

  @Test
  void anotherTargetHasNoStreams() {
    try (LocalGroup group = LocalGroup.of(2)) {
      group.run(
          comm -> {
            Tensor tensor = Tensor.allocate(DType.I32, 4);
            assertThatThrownBy(() -> comm.onStream(0).allReduce(tensor, ReduceOp.SUM))
                .isInstanceOf(UnsupportedException.class)
                .hasMessage(
                    "allReduce on a stream: kernels of target sim don't run on streams; kernels of target cuda do");
            comm.barrier();
          });
    }
  }

  /** Not found by name as tests: for processes where all memory is a device's. */
  static final class OnGpus {
    @OnRanks(RANKS)
    void equalParts(Ranks ranks) {
      ranks.run(StreamCollectivesTest::sum);
    }

    @OnRanks(RANKS)
    void partsThatDifferInSize(Ranks ranks) {
      ranks.run(StreamCollectivesTest::exchange);
    }
  }

  /** The memory of a tensor of the host, which lies on a device here. */
  private static Tensor onDevice(Tensor host) {
    long bytes = host.numel() * host.dtype().bytes();
    return Tensor.ofDevice(host.address(), bytes, host, host.dtype(), host.shape());
  }

  private static int value(int rank, int i) {
    return 1000 * rank + i;
  }

  private static void sum(Communicator comm) {
    Tensor in = Tensor.allocate(DType.I32, COUNT).copyFrom(values(comm.rank(), COUNT));
    Tensor sums = Tensor.allocate(DType.I32, COUNT);
    Tensor all = Tensor.allocate(DType.I32, RANKS, COUNT);
    StreamCollectives stream = comm.onStream(0);
    refuseHostTensors(comm, stream, in, sums);

    List<Operation<Void>> operations = new ArrayList<>();
    for (int i = 0; i < TIMES; i++) {
      operations.add(stream.allReduce(onDevice(in), onDevice(sums), ReduceOp.SUM));
    }
    // Of what they come to, once more.
    operations.add(stream.allReduce(onDevice(sums), ReduceOp.SUM));
    operations.add(stream.allGather(onDevice(in), onDevice(all)));
    Tensor upTo = Tensor.allocate(DType.I32, COUNT);
    operations.add(stream.scan(onDevice(in), onDevice(upTo), ReduceOp.SUM));
    Tensor before = Tensor.allocate(DType.I32, COUNT);
    operations.add(stream.exclusiveScan(onDevice(in), onDevice(before), ReduceOp.MAX));
    Tensor columns = Tensor.allocate(DType.I32, RANKS, COUNT / RANKS);
    operations.add(stream.reduceScatter(onDevice(all), onDevice(columns), ReduceOp.SUM, 1));
    Tensor floats = Tensor.allocate(DType.F32, COUNT).fill(4.0);
    double factor = 0.5 * (comm.rank() + 1);
    operations.add(stream.allReduce(onDevice(floats), onDevice(floats), factor));
    operations.add(stream.barrier());
    operations.get(operations.size() - 1).await(LIMIT);
    for (Operation<Void> each : operations) {
      assertThat(each.isDone()).isTrue();
      each.await(LIMIT);
    }

    for (int i = 0; i < COUNT; i++) {
      int scanned = 0;
      for (int rank = 0; rank <= comm.rank(); rank++) {
        scanned += value(rank, i);
      }
      assertThat(upTo.getLong(i)).isEqualTo(scanned);
      assertThat(before.getLong(i))
          .isEqualTo(comm.rank() == 0 ? Integer.MIN_VALUE : value(comm.rank() - 1, i));
      assertThat(floats.getDouble(i)).isEqualTo(20);
      int row = i / (COUNT / RANKS);
      int column = i % (COUNT / RANKS);
      assertThat(columns.getLong(row, column))
          .isEqualTo(RANKS * value(row, comm.rank() * (COUNT / RANKS) + column));
    }
    int[] summed = new int[COUNT];
    sums.copyTo(summed);
    int[] gathered = new int[RANKS * COUNT];
    all.copyTo(gathered);
    for (int i = 0; i < COUNT; i++) {
      int expected = 0;
      for (int rank = 0; rank < RANKS; rank++) {
        expected += value(rank, i);
        assertThat(gathered[rank * COUNT + i]).isEqualTo(value(rank, i));
      }
      assertThat(summed[i]).isEqualTo(RANKS * expected);
    }
  }

  /** Rank r sends s + 1 elements to rank s, and has r + 1 of a whole. */
  private static void exchange(Communicator comm) {
    int own = comm.rank();
    long[] counts = {1, 2, 3, 4};
    long[] received = new long[RANKS];
    Arrays.fill(received, own + 1);
    int whole = 10;
    Tensor in = Tensor.allocate(DType.I32, whole).copyFrom(values(own, whole));
    Tensor part = Tensor.allocate(DType.I32, own + 1).copyFrom(values(own, own + 1));
    Tensor exchanged = Tensor.allocate(DType.I32, RANKS * (own + 1));
    Tensor placed = Tensor.allocate(DType.I32, RANKS * (own + 1));
    Tensor gathered = Tensor.allocate(DType.I32, whole);
    Tensor reduced = Tensor.allocate(DType.I32, own + 1);
    StreamCollectives stream = comm.onStream(0);
    long[] ascending = {0, 1, 3, 6};
    long[] descending = new long[RANKS];
    for (int rank = 0; rank < RANKS; rank++) {
      descending[rank] = (long) (RANKS - 1 - rank) * (own + 1);
    }

    List<Operation<Void>> operations =
        List.of(
            stream.allToAllv(onDevice(in), counts, onDevice(exchanged), received),
            stream.allToAllv(
                onDevice(in), counts, ascending, onDevice(placed), received, descending),
            stream.allGatherv(onDevice(part), onDevice(gathered), counts),
            stream.reduceScatterv(onDevice(in), onDevice(reduced), counts, ReduceOp.SUM));
    // They have been read.
    Arrays.fill(counts, 0);
    Arrays.fill(received, 0);
    for (Operation<Void> each : operations) {
      each.await(LIMIT);
    }

    for (int from = 0; from < RANKS; from++) {
      for (int i = 0; i <= own; i++) {
        int sent = value(from, own * (own + 1) / 2 + i);
        assertThat(exchanged.getLong(from * (own + 1) + i)).isEqualTo(sent);
        assertThat(placed.getLong((RANKS - 1 - from) * (own + 1) + i)).isEqualTo(sent);
      }
      for (int i = 0; i <= from; i++) {
        assertThat(gathered.getLong(from * (from + 1) / 2 + i)).isEqualTo(value(from, i));
      }
    }
    for (int i = 0; i <= own; i++) {
      int sum = 0;
      for (int rank = 0; rank < RANKS; rank++) {
        sum += value(rank, own * (own + 1) / 2 + i);
      }
      assertThat(reduced.getLong(i)).isEqualTo(sum);
    }
    assertThatThrownBy(() -> stream.allGatherv(part, onDevice(gathered), new long[] {1, 2, 3, 4}))
        .isInstanceOf(UnsupportedException.class)
        .hasMessageStartingWith("allGatherv on a stream: in (i32[");
    assertThatThrownBy(
            () -> stream.allGatherv(onDevice(part), onDevice(gathered), new long[] {1, 2, 3}))
        .isInstanceOf(InvalidArgumentException.class)
        .hasMessageStartingWith("allGatherv: counts has 3 values");
    comm.barrier();
  }

  private static int[] values(int rank, int count) {
    return IntStream.range(0, count).map(i -> value(rank, i)).toArray();
  }

  private static void refuseHostTensors(
      Communicator comm, StreamCollectives stream, Tensor in, Tensor out) {
    assertThatThrownBy(() -> stream.allReduce(in, onDevice(out), ReduceOp.SUM))
        .isInstanceOf(UnsupportedException.class)
        .hasMessageStartingWith("allReduce on a stream: in (i32[1000]) is in the host's memory")
        .hasMessageContaining("copy it to a device first");
    assertThatThrownBy(() -> stream.allReduce(onDevice(in), out, ReduceOp.SUM))
        .isInstanceOf(UnsupportedException.class)
        .hasMessageStartingWith("allReduce on a stream: out (i32[1000])");
    comm.barrier();
  }
}
