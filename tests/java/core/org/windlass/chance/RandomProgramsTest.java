// SPDX-License-Identifier: Apache-2.0
package org.windlass.chance;

import java.time.Duration;
import java.util.List;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.FutureTask;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.windlass.Algorithm;
import org.windlass.CommunicatorOptions;
import org.windlass.DType;
import org.windlass.ReduceOp;
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

  /** Skipping the first of two like steps gives the data of the wrong one. */
  @Test
  void aRankThatSkipsOneOfTwoLikeStepsIsOutOfStep() {
    List<Step> steps = List.of(gather(0), gather(1));
    Fault fault = new Fault(Fault.Kind.SKIP, 1, 0, 0);
    CommunicatorOptions options =
        CommunicatorOptions.defaults().withDeadline(fault.deadline(steps.size()));
    new Program(2, options, steps, fault).run();
  }

  private static Step gather(int number) {
    return new Step(
        number,
        Step.Kind.ALL_GATHER,
        DType.F32,
        4,
        0,
        ReduceOp.SUM,
        Algorithm.AUTO,
        true,
        1,
        List.of());
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
