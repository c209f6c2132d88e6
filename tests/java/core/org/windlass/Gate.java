// SPDX-License-Identifier: Apache-2.0
package org.windlass;

import static org.assertj.core.api.Assertions.assertThat;

import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;

/** An operation in progress until it is told to end; those behind it wait. */
final class Gate {
  private final CountDownLatch begun = new CountDownLatch(1);
  private final CountDownLatch open = new CountDownLatch(1);
  final Operation<Void> operation;

  Gate(Communicator communicator) {
    operation =
        communicator.runAsync(
            c -> {
              begun.countDown();
              pass(open);
            });
    pass(begun);
  }

  void open() {
    open.countDown();
  }

  private static void pass(CountDownLatch latch) {
    try {
      assertThat(latch.await(30, TimeUnit.SECONDS)).isTrue();
    } catch (InterruptedException e) {
      throw new AssertionError(e);
    }
  }
}
