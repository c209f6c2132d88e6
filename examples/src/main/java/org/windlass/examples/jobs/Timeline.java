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
 * The processes of several jobs: what they say, with the time since the start, and what is to be
 * heard of them.
 */
final class Timeline implements AutoCloseable {
  private static final Duration MOMENT = Duration.ofMillis(100);

  private final String example;
  private final PrintStream out;
  private final long startNs = System.nanoTime();
  private final StartedProcesses processes;

  /** Of all jobs, in the order in which they came. Guarded by itself. */
  private final List<String> said = new ArrayList<>();

  Timeline(String example, PrintStream out) {
    this.example = example;
    this.out = out;
    processes = new StartedProcesses(example);
  }

  /** For files of the processes; it goes with them. */
  Path folder() {
    return processes.folder();
  }

  /** Starts a job of so many processes, whose {@code main} gets its name, and {@code more}. */
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

  /** Starts a job by a launcher of its own. */
  void launch(String job, List<String> command, Map<String, String> variables) {
    launchOne(job, command, variables);
    say(job, "starts, by " + command.get(0));
  }

  private void launchOne(String job, List<String> command, Map<String, String> variables) {
    processes.start(job, command, variables, line -> say(job, line));
  }

  /** Gives rank 0 of a job a line to read. */
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

  /** Until a job has said a line that begins so. */
  void await(String begin) throws InterruptedException {
    long endNs = System.nanoTime() + WeightSyncJobs.LIMIT.toNanos();
    while (!hasSaid(begin)) {
      requireNoneHasFailed();
      if (System.nanoTime() - endNs > 0) {
        throw new VerificationFailedException(told("nobody has said \"" + begin + "\""));
      }
    }
  }

  /** Whether one has, now or in a moment. */
  private boolean hasSaid(String begin) throws InterruptedException {
    synchronized (said) {
      if (said.stream().noneMatch(line -> line.startsWith(begin))) {
        said.wait(MOMENT.toMillis());
      }
      return said.stream().anyMatch(line -> line.startsWith(begin));
    }
  }

  /** Until every process has ended, and ended well. */
  void awaitEnds() throws InterruptedException {
    for (JobProcess process : processes.all()) {
      if (!process.hasEnded(WeightSyncJobs.LIMIT)) {
        throw new VerificationFailedException(told(process.job() + " has not ended"));
      }
    }
    requireNoneHasFailed();
  }

  /**
   * PeerLost where a process has ended before its work was done, VerificationFailed where that was
   * because of a wrong value. One that a signal has ended counts first: others fail because of it.
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

  /** Ends all of it, and removes the folder; nothing starts from now on. Idempotent. */
  @Override
  public void close() {
    processes.close();
  }
}
