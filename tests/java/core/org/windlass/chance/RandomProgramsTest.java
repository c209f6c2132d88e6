// SPDX-License-Identifier: Apache-2.0
package org.windlass.chance;

import java.time.Duration;
import java.util.Random;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.FutureTask;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import org.junit.jupiter.api.Test;

/**
 * Random programs with random faults. Where a call returned on a rank its data is right; every rank
 * ends in time and names who was at fault; nothing is left, and a fresh group works. Runs for 20 s,
 * or {@code -Dwindlass.chance.seconds=N}; {@code -Dwindlass.seed=N} runs one program again.
 */
class RandomProgramsTest {
  private static final Duration TIME =
      Duration.ofSeconds(Long.getLong("windlass.chance.seconds", 20));

  /** Far beyond any program's deadline and what a busy machine adds. */
  private static final Duration HANG = Duration.ofSeconds(60);

  /** Programs until the runtime has made what it keeps. */
  private static final int WARM_UP = 30;

  @Test
  void aRandomProgramGivesRightDataOrSaysWhoIsAtFault() throws InterruptedException {
    Long given = Long.getLong("windlass.seed");
    if (given != null) {
      run(given);
      return;
    }
    Random seeds = new Random();
    long end = System.nanoTime() + TIME.toNanos();
    Resources before = null;
    int programs = 0;
    for (; programs < 2 * WARM_UP || System.nanoTime() < end; programs++) {
      if (programs == WARM_UP) {
        before = Resources.settled();
      }
      run(seeds.nextLong());
    }
    before.requireNoMoreIn(Resources.settled());
    System.out.println(programs + " random programs");
  }

  private static void run(long seed) throws InterruptedException {
    Program program = Program.random(seed);
    FutureTask<Void> task = new FutureTask<>(program::run, null);
    Thread thread = new Thread(task, "random program");
    thread.setDaemon(true);
    thread.start();
    try {
      task.get(HANG.toSeconds(), TimeUnit.SECONDS);
    } catch (ExecutionException e) {
      throw named(seed, program, e.getCause());
    } catch (TimeoutException e) {
      StringBuilder stacks = new StringBuilder();
      Thread.getAllStackTraces()
          .forEach(
              (each, frames) -> {
                if (each.getName().startsWith("windlass")) {
                  stacks.append('\n').append(each.getName());
                  for (StackTraceElement frame : frames) {
                    stacks.append("\n    ").append(frame);
                  }
                }
              });
      throw named(seed, program, new AssertionError("hangs: " + stacks));
    }
  }

  private static AssertionError named(long seed, Program program, Throwable cause) {
    return new AssertionError(
        "seed %d (-Dwindlass.seed=%d runs it again), %s: %s"
            .formatted(seed, seed, program, cause),
        cause);
  }
}
