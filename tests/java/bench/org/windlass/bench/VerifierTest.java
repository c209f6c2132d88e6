// SPDX-License-Identifier: Apache-2.0
package org.windlass.bench;

import static org.assertj.core.api.Assertions.assertThatCode;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.time.Duration;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;
import org.windlass.Algorithm;
import org.windlass.DType;
import org.windlass.bench.data.LocalDigits;
import org.windlass.bench.data.Pattern;
import org.windlass.bench.data.Sums;
import org.windlass.bench.side.LibrarySide;
import org.windlass.bench.side.Operation;
import org.windlass.bench.side.Side;
import org.windlass.bench.workload.BarrierWorkload;
import org.windlass.bench.workload.CollectiveWorkload;
import org.windlass.bench.workload.PutWorkload;
import org.windlass.bench.workload.RedistributeWorkload;
import org.windlass.error.VerificationFailedException;
import org.windlass.layout.Layout;
import org.windlass.layout.TensorSpec;
import org.windlass.plan.TransferMode;

/** The verifiers accept what an operation should leave, and nothing else: not one wrong byte. */
class VerifierTest {
  private static final long ITERATION = 41;
  private static final Side SIDE = new LibrarySide(Algorithm.AUTO, true);

  /** Of bytes where they are moved, of f32 where they are summed. */
  private static CollectiveWorkload workload(Operation operation, int ranks, long bytes) {
    DType dtype = operation.sums() ? DType.F32 : DType.U8;
    return new CollectiveWorkload(SIDE, operation, ranks, bytes, dtype);
  }

  @ParameterizedTest
  @ValueSource(ints = {1, 4, 13, 64, 5000})
  void allToAll(int bytes) {
    int ranks = 3;
    int rank = 1;
    ByteBuffer out = memory(ranks * bytes);
    for (int source = 0; source < ranks; source++) {
      ByteBuffer in = memory(ranks * bytes);
      new Pattern(source, in).rewrite(ITERATION);
      out.put(source * bytes, in, rank * bytes, bytes);
    }
    var workload = workload(Operation.ALL_TO_ALL, ranks, bytes);
    checkEveryByte(out, () -> workload.verify(out, rank, ITERATION));
    assertFails(() -> workload.verify(out, rank, ITERATION + 1));
    assertFails(() -> workload.verify(out, rank + 1, ITERATION));
  }

  @ParameterizedTest
  @ValueSource(ints = {1, 4, 13, 64, 5000})
  void broadcast(int bytes) {
    ByteBuffer buffer = memory(bytes);
    new Pattern(0, buffer).rewrite(ITERATION);
    var workload = workload(Operation.BROADCAST, 3, bytes);
    checkEveryByte(buffer, () -> workload.verify(buffer, 2, ITERATION));
    assertFails(() -> workload.verify(buffer, 2, ITERATION - 1));
  }

  @ParameterizedTest
  @ValueSource(ints = {1, 4, 13, 64, 5000})
  void put(int bytes) {
    ByteBuffer inbox = memory(bytes);
    new Pattern(2, inbox).rewrite(ITERATION);
    checkEveryByte(inbox, () -> PutWorkload.verify(inbox, 3, bytes, ITERATION));
    assertFails(() -> PutWorkload.verify(inbox, 3, bytes, ITERATION - 1));
    assertFails(() -> PutWorkload.verify(inbox, 1, bytes, ITERATION));
  }

  @ParameterizedTest
  @ValueSource(ints = {1, 4, 13, 64, 5000})
  void allGather(int bytes) {
    int ranks = 3;
    ByteBuffer out = memory(ranks * bytes);
    for (int source = 0; source < ranks; source++) {
      ByteBuffer in = memory(bytes);
      new Pattern(source, in).rewrite(ITERATION);
      out.put(source * bytes, in, 0, bytes);
    }
    var workload = workload(Operation.ALL_GATHER, ranks, bytes);
    checkEveryByte(out, () -> workload.verify(out, 1, ITERATION));
    assertFails(() -> workload.verify(out, 1, ITERATION + 1));
  }

  @ParameterizedTest
  @ValueSource(ints = {1, 4, 13, 1000})
  void reduceScatter(int count) {
    int ranks = 3;
    int rank = 2;
    var workload = workload(Operation.REDUCE_SCATTER, ranks, 4L * count);
    ByteBuffer sums = sums(ranks, ranks * count);
    ByteBuffer out = memory(4 * count).put(0, sums, 4 * rank * count, 4 * count);
    checkEveryByte(out, () -> workload.verify(out, rank, ITERATION));
    assertFails(() -> workload.verify(out, rank, ITERATION + 1));
  }

  @ParameterizedTest
  @ValueSource(ints = {1, 4, 13, 1000})
  void allReduce(int count) {
    var workload = workload(Operation.ALL_REDUCE, 3, 4L * count);
    ByteBuffer out = sums(3, count);
    checkEveryByte(out, () -> workload.verify(out, 1, ITERATION));
    assertFails(() -> workload.verify(out, 1, ITERATION + 1));
  }

  /** What ranks write as their inputs, added up. */
  private static ByteBuffer sums(int ranks, int count) {
    Sums sums = new Sums(DType.F32, ranks);
    ByteBuffer total = memory(4 * count);
    ByteBuffer input = memory(4 * count);
    for (int rank = 0; rank < ranks; rank++) {
      sums.rewrite(input, rank, ITERATION);
      for (int i = 0; i < count; i++) {
        total.putFloat(4 * i, total.getFloat(4 * i) + input.getFloat(4 * i));
      }
    }
    return total;
  }

  @Test
  void redistribute() {
    Layout from = Layout.parse("2x2:P,S0");
    Layout to = Layout.parse("2@4:S1");
    long[] shape = {6, 5};
    RedistributeWorkload workload =
        new RedistributeWorkload(
            TensorSpec.of("bench", DType.F32, from, shape),
            TensorSpec.of("bench", DType.F32, to, shape),
            DType.BF16,
            TransferMode.DIRECT,
            true,
            Duration.ofSeconds(1));
    byte[] digits = LocalDigits.of(to, shape, 5);
    ByteBuffer target = memory(4 * digits.length);
    for (int i = 0; i < digits.length; i++) {
      // The two terms of an element are three digits apart; both are whole numbers below 8.
      int first = digits[i] + (int) ITERATION & 7;
      target.putFloat(4 * i, first + (first + 3 & 7));
    }
    checkEveryByte(target, () -> workload.verify(target, digits, 5, ITERATION));
    assertFails(() -> workload.verify(target, digits, 5, ITERATION + 1));
  }

  @Test
  void barrier() {
    BarrierWorkload workload = new BarrierWorkload(SIDE, 2);
    assertThatCode(() -> workload.check(0, 5, rank -> 5 + rank)).doesNotThrowAnyException();
    assertThatThrownBy(() -> workload.check(0, 6, rank -> 5 + rank))
        .isInstanceOf(VerificationFailedException.class)
        .hasMessageContaining("rank 0");
  }

  private static ByteBuffer memory(int bytes) {
    return ByteBuffer.allocateDirect(bytes).order(ByteOrder.LITTLE_ENDIAN);
  }

  /** Holds as it is, and with any byte changed it fails. */
  private static void checkEveryByte(ByteBuffer memory, Runnable verify) {
    assertThatCode(verify::run).doesNotThrowAnyException();
    for (int i = 0; i < memory.limit(); i++) {
      byte right = memory.get(i);
      memory.put(i, (byte) (right ^ 0x40));
      assertFails(verify);
      memory.put(i, right);
    }
    assertThatCode(verify::run).doesNotThrowAnyException();
  }

  private static void assertFails(Runnable verify) {
    assertThatThrownBy(verify::run).isInstanceOf(VerificationFailedException.class);
  }
}
