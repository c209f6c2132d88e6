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
 * The maker of communicators whose ranks are the tasks of a barrier stage of Spark, rank r the task
 * of partition r. Tasks of one executor are ranks of one process.
 *
 * <p>A communicator ends with its task: where that ends well it is closed, and where it fails it is
 * aborted, with those that came from it, so that no other task waits for it. Spark then tries the
 * stage anew, whose tasks form a communicator of their own; and so it does where an executor is
 * lost, which tasks in an operation get a {@link org.windlass.error.PeerLostException} of.
 */
public final class SparkCommunicator {
  private static final Duration DEADLINE = Duration.ofSeconds(60);

  private SparkCommunicator() {}

  /** The same with {@link CommunicatorOptions#defaults} and 60 seconds. */
  public static Communicator of(BarrierTaskContext task) {
    return of(task, CommunicatorOptions.defaults(), DEADLINE);
  }

  /**
   * Collective: joins the other tasks of the stage, by {@link BarrierTaskContext#allGather}, which
   * all of them call as often and in the same order, also for what is theirs. Any number of
   * communicators may be made so, one after the other.
   *
   * @param task that of the calling thread, {@link BarrierTaskContext#get}
   * @param options the same in all tasks; cores 0 means those that the executors together may use
   * @param deadline for all tasks to have come. Spark's own limit, {@code
   *     spark.barrier.sync.timeout}, holds beside it
   * @throws org.windlass.error.DeadlineExceededException if some have not
   * @throws org.windlass.error.MismatchException if tasks run different versions of Windlass, ask
   *     for different options, or call {@code allGather} in another order
   * @throws org.windlass.error.UnsupportedException if executors of the tasks live on several
   *     hosts, and one has no UCX, or none of the networks that its settings name; or the natives
   *     don't load in one
   */
  public static Communicator of(
      BarrierTaskContext task, CommunicatorOptions options, Duration deadline) {
    Objects.requireNonNull(task, "task");
    Communicator communicator =
        Communicator.meet(new StageRendezvous(task), options, deadline);
    // Spark calls the one before the other, and either at once where the task has ended already.
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
