// SPDX-License-Identifier: Apache-2.0
package org.windlass.examples.jobs;

import java.io.PrintStream;
import java.time.Duration;
import java.util.function.Consumer;
import org.windlass.CommunicatorOptions;
import org.windlass.job.Job;

/**
 * Shows weight sync between jobs. A trainer of two processes sends five versions of a model to two
 * inference jobs, which were launched separately. These answer all the time, and each answer is a
 * forward pass over one version of the weights. One of them is killed and started again. Neither
 * the trainer nor the other job waits for it. The processes run {@link TrainerJob} and
 * {@link InferenceJob}.
 */
public final class WeightSyncJobs {
  /** Name of the link between the jobs. */
  static final String LINK = "policy";

  static final int VERSIONS = 5;
  static final Duration LIMIT = Duration.ofSeconds(60);

  private final Timeline timeline;

  /** Last version that the trainer was asked to send. */
  private long told;

  private WeightSyncJobs(Timeline timeline) {
    this.timeline = timeline;
  }

  /** Starts the jobs, and prints their output as a timeline. */
  public static void run(PrintStream out, Consumer<AutoCloseable> unfinished) {
    try (Timeline timeline = new Timeline("weight-sync", out)) {
      unfinished.accept(timeline);
      new WeightSyncJobs(timeline).play();
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
      throw new IllegalStateException("weight-sync: interrupted", e);
    }
    out.printf(
        "weight-sync: %d versions from 2 trainer processes to 2 inference jobs, every answer is"
            + " the golden one of its version%n",
        VERSIONS);
  }

  private void play() throws InterruptedException {
    // The order does not matter: inference may start first.
    timeline.start(InferenceJob.class, "inference-a", 2);
    timeline.start(TrainerJob.class, "trainer", 2);
    timeline.await("trainer: is there");
    timeline.start(InferenceJob.class, "inference-b", 1);
    timeline.tell("trainer", "await 2");
    timeline.await("trainer: is followed by");
    sendTo("inference-a", 1);
    sendTo("inference-b", 1);

    timeline.say("", "kill -9 of inference-b, which answers by version 1");
    timeline.kill("inference-b");
    sendTo("inference-a", 2);
    sendTo("inference-a", 3);
    timeline.await("trainer: sent version 3: inference-a: version 3; inference-b: lost");

    timeline.start(InferenceJob.class, "inference-b", 1);
    timeline.tell("trainer", "await 2");
    sendTo("inference-b", 4);
    sendTo("inference-a", 4);
    sendTo("inference-a", 5);
    timeline.await("inference-a: ends after");
    timeline.await("inference-b: ends after");
    timeline.tell("trainer", "end");
    timeline.awaitEnds();
  }

  /** Makes the trainer send a version, once, and waits until a job answers with it. */
  private void sendTo(String job, long version) throws InterruptedException {
    if (told < version) {
      timeline.tell("trainer", "send " + version);
      told = version;
    }
    timeline.await(job + ": turns to version " + version);
  }

  /** The code that a process runs as one rank of its job. */
  @FunctionalInterface
  interface Work {
    void run(Job job) throws InterruptedException;
  }

  /** Joins the job with this name, with the rank in the environment, and does its work. */
  static void inJob(String name, Work work) throws InterruptedException {
    CommunicatorOptions options = CommunicatorOptions.defaults().withDeadline(LIMIT);
    try (Job job = Job.fromEnvironment(name, options, LIMIT)) {
      work.run(job);
    }
  }

  /** Prints a line about an event, from one rank of a job. */
  static void say(Job job, String line) {
    if (job.communicator().rank() == 0) {
      System.out.println(line);
    }
  }
}
