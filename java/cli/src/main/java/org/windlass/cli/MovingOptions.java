// SPDX-License-Identifier: Apache-2.0
package org.windlass.cli;

import java.time.Duration;
import java.util.List;
import java.util.function.Consumer;
import org.windlass.Communicator;
import org.windlass.CommunicatorOptions;
import org.windlass.InvalidArgumentException;
import org.windlass.LocalGroup;
import org.windlass.Target;
import org.windlass.UnsupportedException;
import picocli.CommandLine.Model.CommandSpec;
import picocli.CommandLine.Option;

/** The options that every command that moves data takes. */
public final class MovingOptions {
  private static final String THREADS = "threads";
  private static final String PROCESSES = "processes";

  @Option(
      names = "--target",
      paramLabel = "TARGET",
      defaultValue = "sim",
      description = "What runs the kernels (${DEFAULT-VALUE}); windlass doctor lists them.")
  private String target;

  @Option(
      names = "--deadline",
      paramLabel = "SECONDS",
      defaultValue = "60",
      description =
          "Seconds without progress after which it fails (${DEFAULT-VALUE}): in which no operation"
              + " ends and no byte moves.")
  private double deadline;

  @Option(
      names = "--launch",
      paramLabel = "LAUNCH",
      defaultValue = "threads",
      description = "What ranks are: threads or processes of this machine (${DEFAULT-VALUE}).")
  private String launch;

  /** The target, which is available. */
  public Target target() {
    requireLaunch();
    Target chosen = Target.parse(target);
    chosen.require();
    return chosen;
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

  /** Refuses processes for a command that has ranks as threads alone. */
  void requireThreads(String command) {
    if (!launch().equals(THREADS)) {
      throw new UnsupportedException(
          command + " --launch processes: its ranks are threads in this build");
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
    try (LocalGroup group = Communicator.local(ranks, options())) {
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

  /** How long an operation may go without progress. */
  public Duration deadline() {
    if (!(deadline >= 1e-9 && deadline <= 1e8)) {
      throw new InvalidArgumentException("--deadline " + deadline + ": not in [1e-9, 1e8] seconds");
    }
    return Duration.ofNanos((long) (deadline * 1e9));
  }
}
