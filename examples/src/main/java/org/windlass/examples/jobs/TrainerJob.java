// SPDX-License-Identifier: Apache-2.0
package org.windlass.examples.jobs;

import java.time.Duration;
import java.util.List;
import java.util.concurrent.BlockingQueue;
import java.util.stream.Collectors;
import org.windlass.DType;
import org.windlass.Tensor;
import org.windlass.job.Follower;
import org.windlass.job.Followers;
import org.windlass.job.Job;
import org.windlass.layout.Layout;

/**
 * Runs the trainer's job, which serves any number of inference jobs, each at its own pace. It holds
 * the model cut by columns. It runs the commands that rank 0 receives, line by line. A command
 * either waits for followers or sends a version to the connected ones.
 */
final class TrainerJob {
  private static final long END = 0;
  private static final long AWAIT = 1;
  private static final long SEND = 2;

  /** Time during which the trainer offers a version to late followers. */
  private static final Duration OFFER = Duration.ofSeconds(20);

  private TrainerJob() {}

  public static void main(String[] arguments) throws Exception {
    BlockingQueue<String> told = Parent.lines();
    WeightSyncJobs.inJob(arguments[0], job -> train(job, told));
  }

  private static void train(Job job, BlockingQueue<String> told) throws InterruptedException {
    Layout columns = SyncedModel.layout(job, 1);
    int rank = job.communicator().rank();
    Tensor[] weights = new Tensor[SyncedModel.LAYERS];
    for (int layer = 0; layer < weights.length; layer++) {
      weights[layer] = Tensor.allocate(DType.F32, columns.localShape(SyncedModel.SHAPE, rank));
    }
    try (Followers followers =
        job.followers(
            WeightSyncJobs.LINK,
            builder -> {
              for (int layer = 0; layer < weights.length; layer++) {
                builder.add(SyncedModel.name(layer), SyncedModel.SHAPE, weights[layer], columns);
              }
            })) {
      WeightSyncJobs.say(job, "is there");
      for (long[] step = next(job, told); step[0] != END; step = next(job, told)) {
        if (step[0] == AWAIT) {
          List<Follower> there = followers.await((int) step[1], WeightSyncJobs.LIMIT);
          WeightSyncJobs.say(job, "is followed by " + listed(there));
        } else {
          long version = step[1];
          for (int layer = 0; layer < weights.length; layer++) {
            weights[layer].copyFrom(
                SyncedModel.weights(
                    layer, columns.localRegion(SyncedModel.SHAPE, rank), version));
          }
          List<Follower> there = followers.send(version, OFFER);
          WeightSyncJobs.say(job, "sent version " + version + ": " + listed(there));
        }
      }
    }
  }

  /** Returns rank 0's next command on every rank: a step, and its number. */
  private static long[] next(Job job, BlockingQueue<String> told) throws InterruptedException {
    long[] step = {END, 0};
    if (job.communicator().rank() == 0) {
      String[] words = told.take().split(" ");
      if (words.length == 2) {
        step[0] = words[0].equals("await") ? AWAIT : SEND;
        step[1] = Long.parseLong(words[1]);
      }
    }
    try (Tensor shared = Tensor.allocate(DType.I64, 2).copyFrom(step)) {
      job.communicator().broadcast(shared, 0);
      shared.copyTo(step);
    }
    return step;
  }

  private static String listed(List<Follower> followers) {
    return followers.stream()
        .map(each -> each.lost().isPresent() ? each.job() + ": lost" : each.toString())
        .collect(Collectors.joining("; "));
  }
}
