// SPDX-License-Identifier: Apache-2.0
package org.windlass.testing;

import java.io.IOException;
import java.io.Serializable;
import java.io.UncheckedIOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.stream.Stream;
import org.windlass.LocalGroup;

/**
 * The processes in which ranks of tests live: JVMs that start when the first test needs them, run
 * the bodies of one test after the other, and end with this one. After a failure they are ended,
 * and others start for the next test.
 */
final class RankJvms {
  /** As many as there are at most. */
  static final int MOST = Boolean.getBoolean(SeedRunner.LONG) ? 8 : Launch.FEW;

  /** How long a test may take from what it sends to the first of them to what the last one says. */
  private static final Duration LIMIT = Duration.ofSeconds(100);

  /** Sent to each once the bodies of all are over: whoever closes its ranks ends what others do. */
  private static final String CLOSE = "close";

  private static final List<Processes.Rank> RUNNING = new ArrayList<>();
  private static Path folder;
  private static int runs;

  private RankJvms() {}

  /**
   * What one of them runs.
   *
   * @param run its number, the same for all
   * @param variables as a launcher would set them for it
   * @param ranks those that live there
   * @param limit how long the ranks may take to start
   */
  private record Part(
      int run,
      HashMap<String, String> variables,
      int ranks,
      Duration limit,
      Ranks.Options options,
      Ranks.Body body)
      implements Serializable {}

  /** Runs {@code body} on {@code ranks} ranks, which the launch's processes share alike. */
  static synchronized void run(
      Launch launch, int ranks, Ranks.Options options, Ranks.Body body) {
    int processes = launch.processes(ranks);
    long start = System.nanoTime();
    boolean isOver = false;
    try {
      start(processes - RUNNING.size());
      List<Processes.Rank> taken = RUNNING.subList(0, processes);
      runs++;
      for (int process = 0; process < processes; process++) {
        HashMap<String, String> variables = new HashMap<>();
        variables.put("WINDLASS_RANK", "" + process);
        variables.put("WINDLASS_WORLD_SIZE", "" + processes);
        variables.put("WINDLASS_JOB", "run-" + runs);
        variables.put("XDG_RUNTIME_DIR", folder.toString());
        variables.put("WINDLASS_HOST", launch.host(process));
        taken.get(process).forget();
        Part part = new Part(runs, variables, ranks / processes, left(start), options, body);
        taken.get(process).send(part);
      }
      await(taken, over(runs), start);
      for (Processes.Rank process : taken) {
        process.send(CLOSE);
      }
      await(taken, closed(runs), start);
      isOver = true;
    } catch (IOException e) {
      throw new AssertionError(e);
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
      throw new AssertionError(e);
    } finally {
      if (!isOver) {
        RUNNING.forEach(Processes.Rank::kill);
        RUNNING.clear();
      }
    }
  }

  /** Until each has said {@code text}; a failure tells of all that do not. */
  private static void await(List<Processes.Rank> processes, String text, long start)
      throws InterruptedException {
    List<String> failures = new ArrayList<>();
    for (Processes.Rank process : processes) {
      try {
        process.await(text, left(start));
      } catch (AssertionError e) {
        failures.add(e.getMessage());
      }
    }
    if (!failures.isEmpty()) {
      throw new AssertionError(String.join("\n", failures));
    }
  }

  private static Duration left(long start) {
    return LIMIT.minusNanos(System.nanoTime() - start);
  }

  private static void start(int count) throws IOException {
    if (count <= 0) {
      return;
    }
    if (folder == null) {
      folder = Files.createTempDirectory("windlass-ranks");
      Runtime.getRuntime().addShutdownHook(new Thread(RankJvms::leave));
    }
    Processes started = new Processes(RankJvms.class, count, folder);
    for (int i = 0; i < count; i++) {
      RUNNING.add(started.start(RUNNING.size(), "serve", Map.of()));
    }
  }

  private static void leave() {
    RUNNING.forEach(Processes.Rank::kill);
    try (Stream<Path> files = Files.list(folder)) {
      for (Path file : files.toList()) {
        Files.delete(file);
      }
      Files.delete(folder);
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }
  }

  /** What each of them does until the test's JVM ends: a part after the other. */
  static void serve() throws Exception {
    while (true) {
      Part part = (Part) Processes.receive();
      try (LocalGroup group =
          LocalGroup.fromEnvironment(
              part.variables, part.ranks, part.options.get(), part.limit)) {
        group.run(part.body::run);
        System.out.println(over(part.run));
        Processes.receive();
      }
      System.out.println(closed(part.run));
    }
  }

  private static String over(int run) {
    return "the bodies of run " + run + " are over";
  }

  private static String closed(int run) {
    return "the ranks of run " + run + " are closed";
  }
}
