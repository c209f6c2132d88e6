// SPDX-License-Identifier: Apache-2.0
package org.windlass;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;
import org.windlass.testing.CudaStandIn;

/** Collectives on the default streams of GPUs, over the stand-in for NVIDIA's driver. */
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
    assertThat(CudaStandIn.run(folder, devices, true, StreamCollectivesTest.class))
        .contains("on cuda, all are over");
  }

  @Test
  void anotherTargetHasNoStreams() {
    try (LocalGroup group = Communicator.local(2)) {
      group.run(
          comm -> {
            Tensor tensor = Tensor.allocate(DType.I32, 4);
            assertThatThrownBy(() -> comm.on(0).allReduce(tensor, ReduceOp.SUM))
                .isInstanceOf(UnsupportedException.class)
                .hasMessage(
                    "allReduce on a stream: kernels of target sim run on no stream; those of target"
                        + " cuda do");
            comm.barrier();
          });
    }
  }

  public static void main(String[] arguments) {
    try (LocalGroup group = Communicator.local(RANKS)) {
      group.run(StreamCollectivesTest::sum);
    }
    System.out.println("on " + Target.loaded() + ", all are over");
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
    int[] values = new int[COUNT];
    for (int i = 0; i < COUNT; i++) {
      values[i] = value(comm.rank(), i);
    }
    Tensor in = Tensor.allocate(DType.I32, COUNT).copyFrom(values);
    Tensor sums = Tensor.allocate(DType.I32, COUNT);
    Tensor all = Tensor.allocate(DType.I32, RANKS, COUNT);
    StreamCollectives stream = comm.on(0);
    refuseHostTensors(comm, stream, in, sums);

    List<Operation<Void>> operations = new ArrayList<>();
    for (int i = 0; i < TIMES; i++) {
      operations.add(stream.allReduce(onDevice(in), onDevice(sums), ReduceOp.SUM));
    }
    // Of what they come to, once more.
    operations.add(stream.allReduce(onDevice(sums), ReduceOp.SUM));
    operations.add(stream.allGather(onDevice(in), onDevice(all)));
    operations.add(stream.barrier());
    operations.get(operations.size() - 1).await(LIMIT);
    for (Operation<Void> each : operations) {
      assertThat(each.isDone()).isTrue();
      each.await(LIMIT);
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

  private static void refuseHostTensors(
      Communicator comm, StreamCollectives stream, Tensor in, Tensor out) {
    assertThatThrownBy(() -> stream.allReduce(in, onDevice(out), ReduceOp.SUM))
        .isInstanceOf(UnsupportedException.class)
        .hasMessageStartingWith("allReduce on a stream: in (i32[1000]) lies in the host's memory")
        .hasMessageContaining("copy it to a device's first");
    assertThatThrownBy(() -> stream.allReduce(onDevice(in), out, ReduceOp.SUM))
        .isInstanceOf(UnsupportedException.class)
        .hasMessageStartingWith("allReduce on a stream: out (i32[1000])");
    comm.barrier();
  }
}
