// SPDX-License-Identifier: Apache-2.0
package org.windlass.examples.jobs;

import java.util.ArrayList;
import java.util.List;
import org.windlass.Communicator;
import org.windlass.DType;
import org.windlass.Operation;
import org.windlass.ReduceOp;
import org.windlass.Tensor;
import org.windlass.error.VerificationFailedException;
import org.windlass.job.Job;
import org.windlass.job.Role;
import org.windlass.layout.Layout;
import org.windlass.link.LinkTransfer;

/**
 * Runs an inference job. It holds the model cut by rows and answers all the time. Each answer is a
 * forward pass over one version of the weights, while the next version arrives in other buffers.
 * The job ends after some answers with the last version.
 */
final class InferenceJob {
  /** Number of answers with the last version before a job ends. */
  private static final int LAST_ANSWERS = 20;

  private InferenceJob() {}

  public static void main(String[] arguments) throws Exception {
    Parent.lines();
    WeightSyncJobs.inJob(arguments[0], InferenceJob::infer);
  }

  private static void infer(Job job) throws InterruptedException {
    Communicator ranks = job.communicator();
    Layout rows = SyncedModel.layout(job, 0);
    try (var link = job.connect(WeightSyncJobs.LINK, Role.TARGET, WeightSyncJobs.LIMIT)) {
      var builder = link.transferBuilder();
      for (int layer = 0; layer < SyncedModel.LAYERS; layer++) {
        Tensor weights =
            Tensor.allocate(DType.F32, rows.localShape(SyncedModel.SHAPE, ranks.rank()));
        builder.into(SyncedModel.name(layer), SyncedModel.SHAPE, weights, rows);
      }
      try (LinkTransfer transfer = builder.register(WeightSyncJobs.LIMIT);
          Tensor word = Tensor.allocate(DType.I32, 1)) {
        Operation<Long> arriving = transfer.receiveAsync(WeightSyncJobs.LIMIT);
        List<Tensor> weights = List.of();
        long version = 0;
        long answers = 0;
        while (version < WeightSyncJobs.VERSIONS || answers < LAST_ANSWERS) {
          // All ranks switch to a version together, between two answers.
          boolean isThere = version < WeightSyncJobs.VERSIONS && arriving.isDone();
          if (all(ranks, word, isThere ? 1 : 0, ReduceOp.MIN) == 1) {
            String before = version == 0 ? "" : " after " + answers + " answers by " + version;
            version = arriving.await();
            weights = held(transfer);
            answers = 0;
            WeightSyncJobs.say(job, "turns to version " + version + before);
            if (version < WeightSyncJobs.VERSIONS) {
              arriving = transfer.receiveAsync(WeightSyncJobs.LIMIT); // while this one answers
            }
          }
          if (version > 0) {
            check(all(ranks, word, SyncedModel.answer(weights), ReduceOp.SUM), version);
            answers++;
          }
          Thread.sleep(1);
        }
        WeightSyncJobs.say(job, "ends after " + answers + " answers by " + version);
      }
    }
  }

  /**
   * Returns the tensors of the version that arrived last. They are unchanged while the next one
   * arrives.
   */
  private static List<Tensor> held(LinkTransfer transfer) {
    List<Tensor> weights = new ArrayList<>();
    for (int layer = 0; layer < SyncedModel.LAYERS; layer++) {
      weights.add(transfer.tensor(SyncedModel.name(layer)));
    }
    return weights;
  }

  /** Reduces the ranks' values. */
  private static long all(Communicator ranks, Tensor word, long own, ReduceOp op) {
    word.setLong(own, 0);
    ranks.allReduce(word, op);
    return word.getLong(0);
  }

  private static void check(long answer, long version) {
    if (answer != SyncedModel.golden(version)) {
      throw new VerificationFailedException(
          "the answer is "
              + answer
              + "; version "
              + version
              + " has "
              + SyncedModel.golden(version));
    }
  }
}
