// SPDX-License-Identifier: Apache-2.0
package org.windlass.reshard;

import static org.assertj.core.api.Assertions.assertThat;

import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.util.Arrays;
import java.util.concurrent.atomic.AtomicInteger;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.windlass.DType;

/** Values that a cast puts beyond the range of a dtype, in tensors of all sizes. */
@Timeout(120)
class OverflowsTest {
  private static final int ROUNDS = 20_000;

  @Test
  void noThreadLosesWhatAnotherOneFinds() throws Exception {
    Overflows.Watch[] watches = new Overflows.Watch[ROUNDS];
    Arrays.setAll(watches, i -> new Overflows.Watch(DType.F32, Double.POSITIVE_INFINITY));
    // A thread that finds nothing looks for as long as it can before it says so.
    ByteBuffer plain = ByteBuffer.allocate(8192);
    ByteBuffer infinite = ByteBuffer.allocate(8).order(ByteOrder.LITTLE_ENDIAN);
    infinite.putFloat(4, Float.NEGATIVE_INFINITY);
    AtomicInteger begun = new AtomicInteger();
    Thread other = new Thread(() -> look(watches, plain, begun));
    other.start();
    look(watches, infinite, begun);
    other.join();
    assertThat(Arrays.stream(watches).filter(watch -> !watch.isFound()).count()).isZero();
  }

  /** Looks with each watch at the same time as the other thread. */
  private static void look(Overflows.Watch[] watches, ByteBuffer bytes, AtomicInteger begun) {
    for (int i = 0; i < watches.length; i++) {
      begun.incrementAndGet();
      while (begun.get() < 2 * (i + 1)) {
        Thread.yield();
      }
      watches[i].look(bytes);
    }
  }
}
