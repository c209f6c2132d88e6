// SPDX-License-Identifier: Apache-2.0
package org.windlass.examples.jobs;

import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.UUID;
import java.util.concurrent.locks.LockSupport;
import java.util.function.Consumer;
import java.util.stream.Stream;
import org.windlass.kernel.Target;

/**
 * The processes of an example's jobs, and the folder with their files. The jobs connect under a
 * unique name. Close removes all of it, and any thread may call it.
 */
final class StartedProcesses implements AutoCloseable {
  /** Environment variable of each process and its descendants. Only these have its value. */
  private static final String MARK = "WINDLASS_LINK_RENDEZVOUS";

  /** Time that killed processes may take to end. */
  private static final Duration DEATH = Duration.ofSeconds(5);

  private static final Duration LOOK = Duration.ofMillis(10);

  private final String example;
  private final String unique;

  /** Started processes. This and all fields below are guarded by this. */
  private final List<JobProcess> all = new ArrayList<>();

  /** Folder of files, or null before the first use. */
  private Path folder;

  private boolean isOver;

  StartedProcesses(String example) {
    this.example = example;
    unique = example + "-" + UUID.randomUUID();
  }

  /** Returns the unique name under which the processes find each other. */
  String unique() {
    return unique;
  }

  /** Returns the folder with the processes' files, including those for their rendezvous. */
  synchronized Path folder() {
    requireOpen();
    try {
      if (folder == null) {
        folder = Files.createTempDirectory("windlass-" + example + "-").toAbsolutePath();
      }
      return folder;
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }
  }

  /** Starts another {@link JobProcess}. */
  synchronized void start(
      String job, List<String> command, Map<String, String> variables, Consumer<String> lines) {
    Map<String, String> its = new HashMap<>(variables);
    its.put("WINDLASS_TARGET", Target.loaded().toString());
    its.put(MARK, unique);
    its.put("XDG_RUNTIME_DIR", folder().toString());
    its.put("TMPDIR", folder().toString());
    all.add(new JobProcess(job, command, its, lines));
  }

  /** Returns the processes in the order in which they were started. */
  synchronized List<JobProcess> all() {
    return List.copyOf(all);
  }

  /** Returns the processes of a job in the order of their ranks. */
  List<JobProcess> of(String job) {
    return all().stream().filter(each -> each.job().equals(job)).toList();
  }

  /** Removes a process from the list before it is killed. */
  synchronized void forget(JobProcess process) {
    all.remove(process);
  }

  private void requireOpen() {
    if (isOver) {
      throw new IllegalStateException(example + ": its processes are ended, and no more start");
    }
  }

  /** Kills the processes and removes the folder. Idempotent. */
  @Override
  public synchronized void close() {
    isOver = true;
    all.forEach(JobProcess::close);
    endMarked();
    remove();
  }

  /** Kills the processes' descendants, including those that start meanwhile. */
  private void endMarked() {
    long endNs = System.nanoTime() + DEATH.toNanos();
    do {
      List<ProcessHandle> found = ProcessHandle.allProcesses().filter(this::isMarked).toList();
      if (found.isEmpty()) {
        return;
      }
      found.forEach(ProcessHandle::destroyForcibly);
      LockSupport.parkNanos(LOOK.toNanos());
    } while (System.nanoTime() - endNs < 0);
  }

  /**
   * Returns true if the process has the mark in its environment. False if this user may not read
   * it, or the process has ended.
   */
  private boolean isMarked(ProcessHandle process) {
    try {
      Path file = Path.of("/proc", "" + process.pid(), "environ");
      String variables = "\0" + Files.readString(file, StandardCharsets.ISO_8859_1);
      return variables.contains("\0" + MARK + "=" + unique + "\0");
    } catch (IOException anothersOrGone) {
      return false;
    }
  }

  private void remove() {
    if (folder == null) {
      return;
    }
    try (Stream<Path> files = Files.walk(folder)) {
      for (Path each : files.sorted(Comparator.reverseOrder()).toList()) {
        Files.delete(each);
      }
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }
    folder = null;
  }
}
