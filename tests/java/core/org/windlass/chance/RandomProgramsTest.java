// SPDX-License-Identifier: Apache-2.0
package org.windlass.chance;

import java.time.Duration;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.FutureTask;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import org.junit.jupiter.api.AfterEach;
import org.windlass.testing.RandomSeeds;
import org.windlass.testing.Resources;

/**
 * Random programs with random faults. Where a call returned on a rank its data is right; every rank
 * ends in time and names who was at fault; nothing is left, and a fresh group works.
 */
class RandomProgramsTest {
  /** Far beyond any program's deadline and what a busy machine adds. */
  private static final Duration HANG = Duration.ofSeconds(60);

  /** Programs until the runtime has made what it keeps. */
  private static final int WARM_UP = 5;

  private int programs;
  private Resources before;

  @RandomSeeds(value = 2 * WARM_UP, seconds = 2)
  void aRandomProgramGivesRightDataOrSaysWhoIsAtFault(long seed) throws InterruptedException {
    if (programs++ == WARM_UP) {
      before = Resources.settled();
    }
    Program program = Program.random(seed);
    FutureTask<Void> task = new FutureTask<>(program::run, null);
    Thread thread = new Thread(task, "random program");
    thread.setDaemon(true);
    thread.start();
    try {
      task.get(HANG.toSeconds(), TimeUnit.SECONDS);
    } catch (ExecutionException e) {
      throw named(program, e.getCause());
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
      throw named(program, new AssertionError("hangs: " + stacks));
    }
  }

  private static AssertionError named(Program program, Throwable cause) {
    return new AssertionError(program + ": " + cause, cause);
  }

  @AfterEach
  void nothingIsLeft() {
    System.out.println(programs + " random programs");
    if (before != null) {
      before.requireNoMoreNow();
    }
  }
}
