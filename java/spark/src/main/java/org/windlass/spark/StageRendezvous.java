// SPDX-License-Identifier: Apache-2.0
package org.windlass.spark;

import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.Arrays;
import java.util.Base64;
import java.util.List;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.FutureTask;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import org.apache.spark.BarrierTaskContext;
import org.windlass.launch.Rendezvous;

/** Exchanges messages between the tasks of a barrier stage, on behalf of one task. */
final class StageRendezvous implements Rendezvous {
  private final BarrierTaskContext task;

  StageRendezvous(BarrierTaskContext task) {
    this.task = task;
  }

  @Override
  public int rank() {
    return task.partitionId();
  }

  @Override
  public int size() {
    return task.getTaskInfos().length;
  }

  /** Calls Spark on a separate thread: the call takes neither a deadline nor an interrupt. */
  @Override
  public List<byte[]> allGather(byte[] own, Duration deadline) throws Exception {
    String said = Base64.getEncoder().encodeToString(own);
    FutureTask<String[]> gathering = new FutureTask<>(() -> task.allGather(said));
    Thread thread = new Thread(gathering, "windlass-start-of-task-" + task.taskAttemptId());
    thread.setDaemon(true);
    thread.start();
    try {
      return Arrays.stream(gathering.get(deadline.toNanos(), TimeUnit.NANOSECONDS))
          .map(StageRendezvous::decoded)
          .toList();
    } catch (TimeoutException e) {
      String why = "not all tasks of stage " + task.stageId() + " have called it";
      // Ends the call. Otherwise it would continue, but this task no longer takes part in the
      // stage.
      task.markInterrupted(why);
      throw new TimeoutException(why);
    } catch (ExecutionException e) {
      if (e.getCause() instanceof Exception cause) {
        throw cause;
      }
      throw e;
    }
  }

  /** Decodes a message. If the text is not a message of a start, returns the bytes of the text. */
  private static byte[] decoded(String said) {
    try {
      return Base64.getDecoder().decode(said);
    } catch (IllegalArgumentException e) {
      return said.getBytes(StandardCharsets.UTF_8);
    }
  }
}
