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
    description = "Runs COMMAND as N processes of this machine, each a rank of one job.",
    footer = {
      "%nWhat stands behind COMMAND is its own. Each rank gets RANK, WORLD_SIZE, LOCAL_RANK,"
          + " LOCAL_WORLD_SIZE, MASTER_ADDR and MASTER_PORT, as torchrun sets them, the first four"
          + " also behind WINDLASS_; WINDLASS_RENDEZVOUS and WINDLASS_LAUNCHER_STORE, where this has"
          + " the store at which they join; and WINDLASS_TOKEN_FILE, which is removed at the end.",
      "%nA line of a rank's output stands whole behind the rank in brackets. Rank 0 reads standard"
          + " input, the others none.",
      "%nThe first rank that ends with another status than 0 ends all: they and what they have"
          + " started get SIGTERM, and 5 s later SIGKILL. Its status is that of run; 128 and the"
          + " signal's number where a signal ended it. With --keep-going the others go on, as those"
          + " do that shrink their communicator, and the status is that of the rank that ends last."
          + " What ranks leave behind ends with the last.",
      "%nThere is no deadline for ranks that run. Where all ranks have ended but some that are"
          + " stopped, as by SIGSTOP, it says from time to time which those are; with --deadline it"
          + " ends them."
    })
final class RunCommand implements Callable<Integer> {
  /** Largest number of ranks. Each needs a process, two threads and two buffers. */
  static final int MOST = 256;

  /** Time from SIGTERM to SIGKILL. */
  private static final Duration GRACE = Duration.ofSeconds(5);

  @Option(
      names = "-n",
      paramLabel = "N",
      required = true,
      description = "Ranks, 1 to " + MOST + ".")
  private int ranks;

  @Option(
      names = "--keep-going",
      description = "Ends no other rank where one fails; each that does is told of.")
  private boolean keepGoing;

  @Option(
      names = "--deadline",
      paramLabel = "SECONDS",
      description =
          "Seconds after which it ends ranks that are stopped, once all others have ended; without"
              + " it they are waited for.")
  private @Nullable Double deadline;

  @Parameters(
      arity = "1..*",
      paramLabel = "COMMAND",
      description = "What each rank runs, and its arguments.")
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
        say(processes, failure.get());
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
          processes.await(each -> keepGoing && say(processes, each), stopped);
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

  private boolean say(RankProcesses processes, RankProcesses.Failure failure) {
    if (!ProcessEnd.isNear()) {
      processes.output().say(text(failure));
    }
    return true;
  }

  private String text(RankProcesses.Failure failure) {
    return "windlass run: rank " + failure.rank() + " (process " + failure.pid()
        + ") ended with status " + failure.status()
        + (failure.status() > 128 ? ", as by signal " + (failure.status() - 128) : "")
        + (keepGoing ? "; no other is ended" : "; all are ended");
  }

  /** Returns the exit status for lost output. Prints an error unless the reader has ended. */
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
