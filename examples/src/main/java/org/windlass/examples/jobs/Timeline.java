// SPDX-License-Identifier: Apache-2.0
package org.windlass.examples.jobs;

import java.io.PrintStream;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import org.windlass.error.PeerLostException;
import org.windlass.error.VerificationFailedException;

/**
 * Collects the output of several jobs' processes, with the time since the start, and waits for
 * expected lines.
 */
final class Timeline implements AutoCloseable {
  private static final Duration MOMENT = Duration.ofMillis(100);

  private final String example;
  private final PrintStream out;
  private final long startNs = System.nanoTime();
  private final StartedProcesses processes;

  /** Lines of all jobs, in the order of arrival. Guarded by itself. */
  private final List<String> said = new ArrayList<>();

  Timeline(String example, PrintStream out) {
    this.example = example;
    this.out = out;
    processes = new StartedProcesses(example);
  }

  /** Returns the folder for the processes' files, which close removes. */
  Path folder() {
    return processes.folder();
  }

  /** Starts a job of {@code ranks} processes, whose arguments are {@code job} and {@code more}. */
  void start(Class<?> main, String job, int ranks, String... more) {
    List<String> arguments = new ArrayList<>(List.of(job));
    arguments.addAll(List.of(more));
    for (int rank = 0; rank < ranks; rank++) {
      Map<String, String> variables =
          Map.of(
              "WINDLASS_RANK", String.valueOf(rank),
              "WINDLASS_WORLD_SIZE", String.valueOf(ranks),
              "WINDLASS_JOB", job + "-" + processes.unique());
      launchOne(job, JobProcess.java(main, arguments), variables);
    }
    say(job, "starts, of " + ranks + (ranks == 1 ? " process" : " processes"));
  }

  /** Starts a job with its own launcher. */
  void launch(String job, List<String> command, Map<String, String> variables) {
    launchOne(job, command, variables);
    say(job, "starts, by " + command.get(0));
  }

  private void launchOne(String job, List<String> command, Map<String, String> variables) {
    processes.start(job, command, variables, line -> say(job, line));
  }

  /** Writes a line to the standard input of a job's rank 0. */
  void tell(String job, String line) {
    processes.of(job).get(0).tell(line);
  }

  void kill(String job) throws InterruptedException {
    for (JobProcess process : processes.of(job)) {
      processes.forget(process);
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

  /** Waits until a job has printed a line that starts with {@code begin}. */
  void await(String begin) throws InterruptedException {
    long endNs = System.nanoTime() + WeightSyncJobs.LIMIT.toNanos();
    while (!hasSaid(begin)) {
      requireNoneHasFailed();
      if (System.nanoTime() - endNs > 0) {
        throw new VerificationFailedException(told("nobody has said \"" + begin + "\""));
      }
    }
  }

  /** Returns true if a job has printed such a line. Waits a moment for it. */
  private boolean hasSaid(String begin) throws InterruptedException {
    synchronized (said) {
      if (said.stream().noneMatch(line -> line.startsWith(begin))) {
        said.wait(MOMENT.toMillis());
      }
      return said.stream().anyMatch(line -> line.startsWith(begin));
    }
  }

  /** Waits until every process has ended with status 0. */
  void awaitEnds() throws InterruptedException {
    for (JobProcess process : processes.all()) {
      if (!process.hasEnded(WeightSyncJobs.LIMIT)) {
        throw new VerificationFailedException(told(process.job() + " has not ended"));
      }
    }
    requireNoneHasFailed();
  }

  /**
   * Throws if a process has failed. One that a signal has ended counts first: others fail by it.
   */
  private void requireNoneHasFailed() throws InterruptedException {
    List<JobProcess> failed = processes.all().stream().filter(JobProcess::hasFailed).toList();
    if (failed.isEmpty()) {
      return;
    }
    JobProcess first =
        failed.stream().filter(JobProcess::wasKilled).findFirst().orElse(failed.get(0));
    first.hasEnded(MOMENT);
    String text = told(first.end());
    if (!first.wasKilled() && text.contains(VerificationFailedException.class.getSimpleName())) {
      throw new VerificationFailedException(text);
    }
    throw new PeerLostException(text);
  }

  private String told(String what) {
    synchronized (said) {
      return example + ": " + what + "; the jobs have said: " + String.join(" | ", said);
    }
  }

  /** Ends all processes and removes the folder. Nothing can be started afterwards. Idempotent. */
  @Override
  public void close() {
    processes.close();
  }
}
