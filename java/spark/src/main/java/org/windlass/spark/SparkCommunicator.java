// SPDX-License-Identifier: Apache-2.0
package org.windlass.spark;

import java.time.Duration;
import java.util.Objects;
import org.apache.spark.BarrierTaskContext;
import org.apache.spark.util.TaskCompletionListener;
import org.apache.spark.util.TaskFailureListener;
import org.windlass.Communicator;
import org.windlass.CommunicatorOptions;

/**
 * Creates communicators whose ranks are the tasks of a barrier stage of Spark. Rank r is the task
 * of partition r. Tasks of one executor are ranks of one process.
 *
 * <p>A communicator ends with its task. If the task succeeds, its communicator is closed. If the
 * task fails, its communicator is aborted, so that no other task waits for the failed task.
 * Communicators that were made from this communicator are aborted too. Spark then runs the stage
 * again, and the new tasks form a communicator of their own. Spark does the same if an executor is
 * lost. Tasks that are in an operation at that time get a {@link
 * org.windlass.error.PeerLostException}.
 */
public final class SparkCommunicator {
  private static final Duration DEADLINE = Duration.ofSeconds(60);

  private SparkCommunicator() {}

  /** Creates a communicator with default options and a deadline of 60 seconds. */
  public static Communicator of(BarrierTaskContext task) {
    return of(task, CommunicatorOptions.defaults(), DEADLINE);
  }

  /**
   * Joins the other tasks of the stage by {@link BarrierTaskContext#allGather}. Collective: all
   * tasks must call {@code allGather} the same number of times and in the same order, including the
   * calls in their own code. Tasks may make any number of communicators this way, one after the
   * other.
   *
   * @param task context of the calling thread's task, {@link BarrierTaskContext#get}
   * @param options the same in all tasks; cores 0 means the cores that the executors together may
   *     use
   * @param deadline time limit for all tasks to join. Spark's own limit, {@code
   *     spark.barrier.sync.timeout}, applies too.
   * @throws org.windlass.error.DeadlineExceededException if some tasks have not joined
   * @throws org.windlass.error.MismatchException if tasks run different versions of Windlass, ask
   *     for different options, or call {@code allGather} in another order
   * @throws org.windlass.error.UnsupportedException if the natives don't load in an executor. It is
   *     also thrown if executors are on several hosts, and UCX or the networks that the settings
   *     name are missing on one of them
   */
  public static Communicator of(
      BarrierTaskContext task, CommunicatorOptions options, Duration deadline) {
    Objects.requireNonNull(task, "task");
    Communicator communicator =
        Communicator.meet(new StageRendezvous(task), options, deadline);
    // Spark calls these listeners one after the other. If the task has already ended, Spark calls a
    // listener at once.
    TaskFailureListener failed =
        (context, error) -> communicator.abortAll(name(task) + " failed: " + error);
    TaskCompletionListener ended = context -> communicator.close();
    task.addTaskFailureListener(failed);
    task.addTaskCompletionListener(ended);
    return communicator;
  }

  private static String name(BarrierTaskContext task) {
    String stage = task.stageId() + "." + task.stageAttemptNumber();
    return "task " + task.partitionId() + " of stage " + stage;
  }
}
