// SPDX-License-Identifier: Apache-2.0
package org.windlass.examples.jobs;

import java.io.PrintStream;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.UUID;
import java.util.concurrent.TimeUnit;
import org.windlass.Target;
import org.windlass.VerificationFailedException;

/**
 * The processes of several jobs: what they say, with the time since the start, and what is to be
 * heard of them.
 */
final class Timeline implements AutoCloseable {
  private final PrintStream out;
  private final long startNs = System.nanoTime();
  private final String unique = "weight-sync-" + UUID.randomUUID();
  private final Map<String, List<JobProcess>> jobs = new LinkedHashMap<>();

  /** Of all jobs, in the order in which they came. Guarded by itself. */
  private final List<String> said = new ArrayList<>();

  Timeline(PrintStream out) {
    this.out = out;
  }

  /** Starts a job of so many processes, whose {@code main} gets the job's name. */
  void start(Class<?> main, String job, int ranks) {
    List<JobProcess> processes = new ArrayList<>();
    jobs.put(job, processes);
    for (int rank = 0; rank < ranks; rank++) {
      Map<String, String> variables =
          Map.of(
              "WINDLASS_RANK", String.valueOf(rank),
              "WINDLASS_WORLD_SIZE", String.valueOf(ranks),
              "WINDLASS_TARGET", Target.loaded().toString(),
              "WINDLASS_JOB", job + "-" + unique,
              "WINDLASS_MEETING", unique);
      processes.add(new JobProcess(main, List.of(job), variables, line -> say(job, line)));
    }
    say(job, "starts, of " + ranks + (ranks == 1 ? " process" : " processes"));
  }

  /** Gives rank 0 of a job a line to read. */
  void tell(String job, String line) {
    jobs.get(job).get(0).tell(line);
  }

  void kill(String job) throws InterruptedException {
    for (JobProcess process : jobs.remove(job)) {
      process.kill();
    }
  }

  void say(String job, String line) {
    double seconds = (System.nanoTime() - startNs) / 1e9;
    synchronized (said) {
      out.printf(Locale.ROOT, "%8.3f s  %-12s %s%n", seconds, job, line);
      said.add(job + ": " + line);
      said.notifyAll();
    }
  }

  /** Until a job has said a line that begins so. */
  void await(String begin) throws InterruptedException {
    long endNs = System.nanoTime() + WeightSyncJobs.LIMIT.toNanos();
    synchronized (said) {
      while (said.stream().noneMatch(line -> line.startsWith(begin))) {
        long leftMs = TimeUnit.NANOSECONDS.toMillis(endNs - System.nanoTime());
        boolean hasFailed =
            jobs.values().stream().flatMap(List::stream).anyMatch(JobProcess::hasFailed);
        if (leftMs <= 0 || hasFailed) {
          throw failure("nobody has said \"" + begin + "\"");
        }
        said.wait(Math.min(leftMs, 100));
      }
    }
  }

  /** Until every process has ended, and ended well. */
  void awaitEnds() throws InterruptedException {
    for (Map.Entry<String, List<JobProcess>> job : jobs.entrySet()) {
      for (JobProcess process : job.getValue()) {
        if (!process.hasEnded(WeightSyncJobs.LIMIT) || process.hasFailed()) {
          throw failure(job.getKey() + " has not ended well");
        }
      }
    }
  }

  private VerificationFailedException failure(String what) {
    synchronized (said) {
      return new VerificationFailedException(
          "weight-sync: " + what + "; the jobs have said: " + String.join(" | ", said));
    }
  }

  @Override
  public void close() {
    jobs.values().forEach(processes -> processes.forEach(JobProcess::close));
  }
}
