// SPDX-License-Identifier: Apache-2.0
package org.windlass.cli;

import java.io.File;
import java.io.FileDescriptor;
import java.io.FileOutputStream;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.List;
import java.util.Optional;
import java.util.concurrent.Callable;
import java.util.stream.Stream;
import org.jspecify.annotations.Nullable;
import org.windlass.cli.run.RankProcesses;
import org.windlass.cli.run.RankVariables;
import org.windlass.cli.run.RunFolder;
import org.windlass.cli.run.SharedOutput;
import org.windlass.cli.run.StoppedRanks;
import org.windlass.error.ErrorCode;
import org.windlass.error.InvalidArgumentException;
import org.windlass.error.ResourceException;
import org.windlass.error.WindlassException;
import picocli.CommandLine.Command;
import picocli.CommandLine.Option;
import picocli.CommandLine.Parameters;

/**
 * Runs {@code windlass run}: starts a command as several processes of this machine, each a rank.
 */
@Command(
    name = "run",
    customSynopsis = "windlass run [OPTIONS] -n N [--] COMMAND...",
    description = "Runs COMMAND in N processes of this machine, as the ranks of a job.",
    footer = {
      "  windlass run -n 4 -- sh -c 'echo rank $RANK of $WORLD_SIZE'",
      "  windlass run -n 2 --keep-going java -cp app.jar Trainer"
    })
final class RunCommand implements Callable<Integer> {
  /** Largest number of ranks. Each needs a process, two threads and two buffers. */
  static final int MOST = 256;

  /** Time from SIGTERM to SIGKILL. */
  private static final Duration GRACE = Duration.ofSeconds(5);

  @Option(
      names = {"-n", "--ranks"},
      paramLabel = "N",
      required = true,
      description = "Ranks, 1 to " + MOST + " (required).")
  private int ranks;

  @Option(
      names = "--keep-going",
      description = "If a rank fails, let the others continue.")
  private boolean keepGoing;

  @Option(
      names = "--deadline",
      paramLabel = "S",
      description =
          "Seconds without progress until it ends suspended ranks, once all others have ended"
              + " (default: no limit).")
  private @Nullable Double deadline;

  @Parameters(
      arity = "1..*",
      paramLabel = "COMMAND",
      description = "What each rank runs, with its arguments.")
  private List<String> command;

  @Override
  public Integer call() throws IOException, InterruptedException {
    if (ranks < 1 || ranks > MOST) {
      throw new InvalidArgumentException(
          "-n " + ranks + ": 1 to " + MOST
              + " ranks run here, each a process of this machine; for more take a launcher of"
              + " clusters");
    }
    Optional<Duration> limit =
        Optional.ofNullable(deadline)
            .map(seconds -> MovingOptions.seconds("run: --deadline", seconds));
    try (Unfinished unfinished = new Unfinished();
        RunFolder folder = new RunFolder();
        RankProcesses processes =
            new RankProcesses(
                0, stream(FileDescriptor.out), stream(FileDescriptor.err), GRACE)) {
      unfinished.add(processes);
      unfinished.add(folder);
      Optional<RankProcesses.Failure> failure = run(processes, folder, limit);
      if (failure.isPresent() && !keepGoing) {
        say(processes, failure.get(), ranks == 1 ? "" : "; all other ranks are ended");
      }
      Optional<SharedOutput.Loss> loss = processes.output().loss();
      return loss.isPresent()
          ? statusOf(loss.get())
          : failure.map(RankProcesses.Failure::status).orElse(0);
    }
  }

  private Optional<RankProcesses.Failure> run(
      RankProcesses processes, RunFolder folder, Optional<Duration> limit)
      throws IOException, InterruptedException {
    try (RankVariables variables = new RankVariables(ranks, folder)) {
      start(processes, variables);
      StoppedRanks stopped = new StoppedRanks(processes, limit);
      Optional<RankProcesses.Failure> failure =
          processes.await(
              (each, left) -> keepGoing && say(processes, each, continuing(left)), stopped);
      processes.end();
      processes.finishOutput();
      return failure;
    }
  }

  private void start(RankProcesses processes, RankVariables variables) {
    for (int rank = 0; rank < ranks; rank++) {
      try {
        processes.start(command, variables.of(rank));
      } catch (IOException refused) {
        throw refusal(rank, refused);
      }
    }
  }

  private WindlassException refusal(int rank, IOException refused) {
    String name = command.get(0);
    if (!isThere(name)) {
      String where = name.contains("/") ? "file" : "command on the PATH";
      return new InvalidArgumentException("run: " + name + ": no such " + where, refused);
    }
    return new ResourceException("run: rank " + rank + ": " + refused.getMessage(), refused);
  }

  private static boolean isThere(String name) {
    if (name.contains("/")) {
      return Files.exists(Path.of(name));
    }
    String path = System.getenv().getOrDefault("PATH", "");
    return Stream.of(path.split(File.pathSeparator))
        .anyMatch(folder -> Files.exists(Path.of(folder, name)));
  }

  private String continuing(int left) {
    if (left > 0) {
      return "; the other ranks continue";
    }
    return ranks == 1 ? "" : "; no other rank is left";
  }

  private static boolean say(
      RankProcesses processes, RankProcesses.Failure failure, String others) {
    if (!ProcessEnd.isNear()) {
      processes.output().say(text(failure) + others);
    }
    return true;
  }

  private static String text(RankProcesses.Failure failure) {
    return "windlass run: rank " + failure.rank() + " (process " + failure.pid()
        + ") ended with status " + failure.status()
        + (failure.status() > 128 ? ", as by signal " + (failure.status() - 128) : "");
  }

  /**
   * Returns the exit status for lost output. Prints an error, unless the output was lost because
   * its reader has ended.
   */
  private static int statusOf(SharedOutput.Loss loss) {
    if (Results.isReaderGone(loss.fault())) {
      return ErrorCode.RESOURCE.exitStatus();
    }
    throw new ComplaintException(
        Results.complaint(loss.stream(), loss.fault(), "all ranks were ended"), loss.fault());
  }

  /** Returns a descriptor's byte stream, since the ranks' bytes are copied unchanged. */
  private static FileOutputStream stream(FileDescriptor descriptor) {
    return new FileOutputStream(descriptor);
  }
}
