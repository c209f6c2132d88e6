// SPDX-License-Identifier: Apache-2.0
package org.windlass.reshard;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.time.Duration;
import java.util.concurrent.atomic.AtomicLong;
import java.util.concurrent.locks.LockSupport;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.windlass.Communicator;
import org.windlass.DeadlineExceededException;
import org.windlass.LocalGroup;

@Timeout(60)
class ProgressWatchTest {
  private static final Duration DEADLINE = Duration.ofMillis(750);

  /** Two ranks of which one comes late to a barrier, and calls the system all the while. */
  private static void run(long lateMillis, boolean calls) {
    AtomicLong count = new AtomicLong();
    ProgressWatch watch =
        new ProgressWatch(DEADLINE, () -> 0, count::get, 1, (moved, total) -> {});
    try (LocalGroup group = Communicator.local(2)) {
      watch.run(
          group,
          () ->
              group.run(
                  comm -> {
                    for (long at = 0; comm.rank() == 1 && at < lateMillis; at += 20) {
                      LockSupport.parkNanos(20_000_000);
                      count.addAndGet(calls ? 1 : 0);
                    }
                    comm.barrier();
                  }));
    }
    assertThat(count.get() > 0).isEqualTo(calls);
  }

  @Test
  void slowReadsAndWritesAreProgress() {
    run(2000, true);
  }

  @Test
  void nothingForTheLengthOfTheDeadlineIsATimeout() {
    assertThatThrownBy(() -> run(2500, false))
        .isInstanceOf(DeadlineExceededException.class)
        .hasMessageContaining("nothing moved for 0.75 s");
  }
}
