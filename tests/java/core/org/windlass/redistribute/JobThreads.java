// SPDX-License-Identifier: Apache-2.0
package org.windlass.redistribute;

import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.UUID;
import java.util.concurrent.FutureTask;
import java.util.concurrent.TimeUnit;
import org.windlass.Communicator;
import org.windlass.CommunicatorOptions;
import org.windlass.LocalGroup;
import org.windlass.testing.Resources;

/**
 * The jobs of a test, all of whose ranks are threads of its JVM. Closing this ends them, and fails
 * where they have left something behind.
 */
final class JobThreads implements AutoCloseable {
  static final Duration SOON = Duration.ofSeconds(40);

  private static final CommunicatorOptions OPTIONS =
      CommunicatorOptions.defaults().withDeadline(SOON);

  private final Resources before;
  private final Map<String, String> environment;
  private final List<LocalGroup> groups = new ArrayList<>();

  /** What each rank of a job does. */
  @FunctionalInterface
  interface Body {
    void run(Job job) throws Exception;
  }

  /** Those that meet by a name of their own; {@code folder} is for its file. */
  JobThreads(Path folder) {
    this(
        Map.of(
            "WINDLASS_MEETING", "test-" + UUID.randomUUID(), "XDG_RUNTIME_DIR", folder.toString()));
  }

  /** Those that have this environment. */
  JobThreads(Map<String, String> environment) {
    Communicator.local(2).close(); // loads the natives
    before = Resources.now();
    this.environment = environment;
  }

  /** A job that runs until {@link #end} of what this gives. */
  FutureTask<Void> start(String name, int ranks, Body body) {
    return start(name, ranks, OPTIONS, body);
  }

  /** The same with options of its own. */
  FutureTask<Void> start(String name, int ranks, CommunicatorOptions options, Body body) {
    LocalGroup group = Communicator.local(ranks, OPTIONS);
    groups.add(group);
    FutureTask<Void> task =
        new FutureTask<>(
            () -> {
              try (group) {
                group.run(
                    comm -> {
                      try (Job job = Job.of(name, comm, options, environment, SOON)) {
                        body.run(job);
                      } catch (RuntimeException | Error e) {
                        throw e;
                      } catch (Exception e) {
                        throw new IllegalStateException(e);
                      }
                    });
              }
              return null;
            });
    new Thread(task, "job-" + name).start();
    return task;
  }

  /** Until all have ended, each without a failure. */
  @SafeVarargs
  static void end(FutureTask<Void>... jobs) throws Exception {
    for (FutureTask<Void> job : jobs) {
      job.get(2 * SOON.toSeconds(), TimeUnit.SECONDS);
    }
  }

  @Override
  public void close() {
    groups.forEach(LocalGroup::close);
    before.requireNoMoreNow();
  }
}
