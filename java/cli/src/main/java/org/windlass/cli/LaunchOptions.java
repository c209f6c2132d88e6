// SPDX-License-Identifier: Apache-2.0
package org.windlass.cli;

import java.util.List;
import java.util.function.Consumer;
import org.windlass.CommunicatorOptions;
import org.windlass.LocalGroup;
import org.windlass.error.InvalidArgumentException;
import org.windlass.kernel.Target;
import picocli.CommandLine.Model.CommandSpec;
import picocli.CommandLine.Option;

/**
 * Command-line options of every command that moves data between ranks, as threads or processes.
 */
final class LaunchOptions extends MovingOptions {
  static final String THREADS = "threads";
  static final String PROCESSES = "processes";

  @Option(
      names = "--launch",
      paramLabel = "LAUNCH",
      defaultValue = "threads",
      completionCandidates = Choices.Launches.class,
      description = "How ranks run: ${COMPLETION-CANDIDATES} (default: ${DEFAULT-VALUE}).")
  private String launch;

  @Override
  Target target() {
    requireLaunch();
    return super.target();
  }

  String launch() {
    requireLaunch();
    return launch;
  }

  boolean areProcesses() {
    return launch().equals(PROCESSES);
  }

  private void requireLaunch() {
    if (!launch.equals(THREADS) && !launch.equals(PROCESSES)) {
      throw new InvalidArgumentException("--launch " + launch + ": must be threads or processes");
    }
  }

  /**
   * Runs the body with the ranks of this process. If ranks are threads, these are all ranks.
   * Otherwise this process has one rank, and each other rank is a process that runs this command
   * line. Only rank 0 prints results.
   */
  void onRanks(CommandSpec command, int ranks, Consumer<LocalGroup> body) {
    if (areProcesses()) {
      onProcesses(command, ranks, 1, body);
      return;
    }
    // A signal is reported until the ranks have ended.
    Unfinished unfinished = new Unfinished();
    try (unfinished;
        LocalGroup group = LocalGroup.of(ranks, options())) {
      body.accept(group);
    }
  }

  /**
   * Runs the body in {@code processes} processes with {@code ranks} ranks each. This process has
   * the first ranks, and the other processes run this command line too.
   */
  void onProcesses(CommandSpec command, int processes, int ranks, Consumer<LocalGroup> body) {
    List<String> arguments = command.root().commandLine().getParseResult().originalArgs();
    new ProcessLaunch(arguments, processes, ranks, options()).run(body);
  }

  private CommunicatorOptions options() {
    return CommunicatorOptions.defaults().withDeadline(deadline());
  }
}
