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

/** The options that every command takes that moves data between ranks of either kind. */
final class LaunchOptions extends MovingOptions {
  private static final String THREADS = "threads";
  private static final String PROCESSES = "processes";

  @Option(
      names = "--launch",
      paramLabel = "LAUNCH",
      defaultValue = "threads",
      description =
          "What ranks are: threads or processes of this machine (${DEFAULT-VALUE}). Processes have"
              + " the seconds of --deadline to come up.")
  private String launch;

  @Override
  Target target() {
    requireLaunch();
    return super.target();
  }

  /** What ranks are: {@code threads} or {@code processes}. */
  String launch() {
    requireLaunch();
    return launch;
  }

  /** Whether ranks are to be processes. */
  boolean areProcesses() {
    return launch().equals(PROCESSES);
  }

  private void requireLaunch() {
    if (!launch.equals(THREADS) && !launch.equals(PROCESSES)) {
      throw new InvalidArgumentException("--launch " + launch + ": threads or processes");
    }
  }

  /**
   * Runs the body with the ranks of this process: all of them, or one, and each of the others in a
   * process of its own that runs this command line too. Results are rank 0's to print.
   */
  void onRanks(CommandSpec command, int ranks, Consumer<LocalGroup> body) {
    if (areProcesses()) {
      onProcesses(command, ranks, 1, body);
      return;
    }
    try (LocalGroup group = LocalGroup.of(ranks, options())) {
      body.accept(group);
    }
  }

  /**
   * Runs the body in so many processes, of which each has {@code ranks} ranks: this one, which has
   * the first of them, and others that run this command line too.
   */
  void onProcesses(CommandSpec command, int processes, int ranks, Consumer<LocalGroup> body) {
    List<String> arguments = command.root().commandLine().getParseResult().originalArgs();
    new ProcessLaunch(arguments, processes, ranks, options()).run(body);
  }

  private CommunicatorOptions options() {
    return CommunicatorOptions.defaults().withDeadline(deadline());
  }
}
