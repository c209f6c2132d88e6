// SPDX-License-Identifier: Apache-2.0
package org.windlass.chance;

import java.time.Duration;
import java.util.Random;
import java.util.concurrent.CancellationException;
import java.util.concurrent.locks.LockSupport;
import org.windlass.Communicator;

/** What one rank of a random program does wrong before one of its steps. */
record Fault(Kind kind, int rank, int step, int delayMicros) {
  enum Kind {
    NONE,
    PAUSE,
    STALL,
    THROW,
    INTERRUPT,
    INTERRUPT_FROM_OUTSIDE,
    ABORT,
    ABORT_FROM_OUTSIDE,
    CLOSE,
    CLOSE_FROM_OUTSIDE,
    MISTAKE,
    SKIP,
    CANCEL
  }

  /** What a body throws by itself. */
  static final class Thrown extends RuntimeException {
    private static final long serialVersionUID = 1L;

    Thrown() {
      super("thrown by the program");
    }
  }

  static Fault random(int ranks, int steps, Random random) {
    Kind[] kinds = Kind.values();
    Kind kind = random.nextInt(3) == 0 ? Kind.NONE : kinds[random.nextInt(kinds.length)];
    return new Fault(
        kind, random.nextInt(ranks), random.nextInt(steps), random.nextInt(3000));
  }

  /** Whether every rank goes through the program in spite of it. */
  boolean isHarmless() {
    return kind == Kind.NONE || kind == Kind.PAUSE;
  }

  /** That of operations in a program of so many steps: less where peers learn of it by that alone. */
  Duration deadline(int steps) {
    if (kind == Kind.STALL) {
      return Duration.ofMillis(700);
    }
    return Duration.ofSeconds(kind == Kind.SKIP && step == steps - 1 ? 3 : 30);
  }

  /** Does it on the rank, then calls the step, unless the fault is to skip it. */
  void run(Communicator comm, Step step, long stallMillis) {
    switch (kind) {
      case PAUSE -> LockSupport.parkNanos(delayMicros * 10_000L);
      case STALL -> pause(stallMillis);
      case THROW -> throw new Thrown();
      case INTERRUPT -> Thread.currentThread().interrupt();
      case INTERRUPT_FROM_OUTSIDE -> {
        Thread self = Thread.currentThread();
        outside(self::interrupt);
      }
      case ABORT -> comm.abort("the program said so");
      case ABORT_FROM_OUTSIDE -> outside(() -> comm.abort("the program said so"));
      case CLOSE -> comm.close();
      case CLOSE_FROM_OUTSIDE -> outside(comm::close);
      case CANCEL -> {
        var operation = comm.runAsync(c -> c.barrier());
        LockSupport.parkNanos(delayMicros * 1000L);
        operation.cancel();
        try {
          operation.await();
        } catch (CancellationException e) {
          // It had not begun: the peers know nothing of it.
        }
      }
      default -> {
        // MISTAKE and SKIP change what the caller does.
      }
    }
    if (kind != Kind.SKIP) {
      (kind == Kind.MISTAKE ? step.mistaken() : step).run(comm);
    }
  }

  private void outside(Runnable action) {
    Thread thread =
        new Thread(
            () -> {
              LockSupport.parkNanos(delayMicros * 1000L);
              action.run();
            },
            "fault");
    thread.setDaemon(true);
    thread.start();
  }

  private static void pause(long millis) {
    try {
      Thread.sleep(millis);
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
    }
  }
}
