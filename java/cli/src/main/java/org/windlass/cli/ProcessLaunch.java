// SPDX-License-Identifier: Apache-2.0
package org.windlass.cli;

import java.io.FileDescriptor;
import java.io.FileOutputStream;
import java.io.IOException;
import java.io.OutputStream;
import java.time.Duration;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.function.Consumer;
import org.windlass.Communicator;
import org.windlass.CommunicatorOptions;
import org.windlass.LocalGroup;
import org.windlass.cli.run.OwnJvm;
import org.windlass.cli.run.RankProcesses;
import org.windlass.cli.run.RankVariables;
import org.windlass.cli.run.RunFolder;
import org.windlass.error.ErrorCode;
import org.windlass.error.PeerLostException;
import org.windlass.error.ResourceException;

/**
 * Runs a command whose ranks are processes. The first is this process, and each of the others is a
 * JVM that runs the same command line. When one process fails, all of them end. The reported error
 * is that of the process that caused the others to fail.
 */
final class ProcessLaunch {
  /** Time from SIGTERM to SIGKILL. */
  private static final Duration GRACE = Duration.ofSeconds(5);

  /** Time for a rank to end on its own after it has finished or its peers have failed. */
  private static final Duration LAST_WORDS = Duration.ofSeconds(5);

  /** Error codes of ranks that fail because other ranks have failed. */
  private static final Set<ErrorCode> CONSEQUENCES =
      Set.of(ErrorCode.ABORTED, ErrorCode.PEER_LOST, ErrorCode.DEADLINE_EXCEEDED);

  private final List<String> arguments;
  private final int processes;
  private final int ranks;
  private final CommunicatorOptions options;

  ProcessLaunch(
      List<String> arguments, int processes, int ranks, CommunicatorOptions options) {
    this.arguments = arguments;
    this.processes = processes;
    this.ranks = ranks;
    this.options = options;
  }

  void run(Consumer<LocalGroup> body) {
    if (LaunchedRank.isThis()) {
      runRank(System.getenv(), body, () -> {});
      return;
    }
    try (Unfinished unfinished = new Unfinished();
        RunFolder folder = new RunFolder();
        RankProcesses others = new RankProcesses(1, standardError(), standardError(), GRACE)) {
      unfinished.add(others);
      unfinished.add(folder);
      OwnJvm jvm = new OwnJvm(folder);
      try (RankVariables variables = new RankVariables(processes, folder)) {
        for (int process = 1; process < processes; process++) {
          List<String> option = List.of(LaunchedRank.option(folder.resolve("" + process)));
          others.start(
              jvm.command(option, Main.class, arguments), variables.of(process));
        }
        Map<String, String> own = new HashMap<>(System.getenv());
        own.putAll(variables.of(0));
        run(own, body, others, folder);
      }
    } catch (IOException fault) {
      throw new ResourceException("--launch processes: " + fault.getMessage(), fault);
    }
  }

  /** Returns standard error as a byte stream, so that the ranks' bytes are copied unchanged. */
  private static OutputStream standardError() {
    return new FileOutputStream(FileDescriptor.err);
  }

  private void run(
      Map<String, String> own,
      Consumer<LocalGroup> body,
      RankProcesses others,
      RunFolder folder)
      throws IOException {
    try (StartWatch watch = new StartWatch(others)) {
      runRank(own, body, watch::close);
    } catch (RuntimeException failure) {
      throw cause(failure, others.failures(LAST_WORDS), folder);
    }
    List<RankProcesses.Failure> failures = others.failures(LAST_WORDS);
    if (!failures.isEmpty()) {
      throw cause(lost(failures.get(0), "when all was done"), failures, folder);
    }
  }

  /** Runs the body with the ranks of this process. Calls {@code onStart} once all have joined. */
  private void runRank(
      Map<String, String> variables, Consumer<LocalGroup> body, Runnable onStart) {
    try (LocalGroup group =
        LocalGroup.fromEnvironment(variables, ranks, options, options.deadline())) {
      onStart.run();
      body.accept(group);
      // This waits, so that no rank leaves while another may still access its memory.
      group.run(Communicator::barrier);
    }
  }

  /**
   * Returns the failure that caused the failures of other ranks. Returns {@code failure} if the
   * cause is unknown.
   */
  private RuntimeException cause(
      RuntimeException failure, List<RankProcesses.Failure> failures, RunFolder folder)
      throws IOException {
    ErrorCode code = Complaint.of(failure).code();
    if (!CONSEQUENCES.contains(code)) {
      return failure;
    }
    List<Complaint> consequences = new ArrayList<>();
    for (RankProcesses.Failure each : failures) {
      Optional<Complaint> told =
          LaunchedRank.told(ranksOf(each.rank()), folder.resolve("" + each.rank()));
      if (told.isPresent() && !CONSEQUENCES.contains(told.get().code())) {
        return new ComplaintException(told.get(), failure);
      }
      if (told.isEmpty() && code != ErrorCode.PEER_LOST) {
        return lost(each, "before all was done");
      }
      told.ifPresent(consequences::add);
    }
    // If this rank has given up the start, only this rank knows that.
    if (code == ErrorCode.ABORTED && !consequences.isEmpty()) {
      return new ComplaintException(consequences.get(0), failure);
    }
    return failure;
  }

  private String ranksOf(int process) {
    int first = process * ranks;
    return ranks == 1 ? "rank " + first : "ranks " + first + " to " + (first + ranks - 1);
  }

  private PeerLostException lost(RankProcesses.Failure failure, String when) {
    return new PeerLostException(
        ranksOf(failure.rank()) + " (process " + failure.pid() + ") ended with status "
            + failure.status() + " " + when);
  }

  /** Interrupts the waiting thread if a rank fails before all ranks have joined. */
  private static final class StartWatch implements AutoCloseable {
    private final Thread starting = Thread.currentThread();
    private final Thread watching;
    private boolean isOver;
    private boolean hasInterrupted;

    StartWatch(RankProcesses ranks) {
      watching = new Thread(() -> watch(ranks), "windlass-launch");
      watching.setDaemon(true);
      watching.start();
    }

    private void watch(RankProcesses ranks) {
      try {
        if (ranks.awaitEnd().isPresent()) {
          interrupt();
        }
      } catch (InterruptedException over) {
        // All ranks have joined.
      }
    }

    private synchronized void interrupt() {
      if (!isOver) {
        hasInterrupted = true;
        starting.interrupt();
      }
    }

    @Override
    public synchronized void close() {
      if (!isOver) {
        isOver = true;
        watching.interrupt();
        if (hasInterrupted) {
          Thread.interrupted();
        }
      }
    }
  }
}
