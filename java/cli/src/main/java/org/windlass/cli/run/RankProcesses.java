// SPDX-License-Identifier: Apache-2.0
package org.windlass.cli.run;

import java.io.File;
import java.io.IOException;
import java.io.OutputStream;
import java.lang.ProcessBuilder.Redirect;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.HashMap;
import java.util.HashSet;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.UUID;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.locks.LockSupport;
import java.util.function.BiPredicate;
import java.util.stream.IntStream;

/**
 * The processes of a job's ranks on this machine. They end together, with all processes that they
 * have started. These are the ranks' descendants. If a rank has ended, they are also all processes
 * with {@link #MARK} in their environment.
 */
public final class RankProcesses implements AutoCloseable {
  public record Rank(int number, long pid) {}

  /**
   * A rank that ended with another status than 0. As in shells, 128 plus a signal's number means
   * that the signal ended it.
   */
  public record Failure(int rank, long pid, int status) {}

  /** Environment variable of ranks and their descendants. Its value is unique to the job. */
  static final String MARK = "WINDLASS_RUN";

  /**
   * Number of times that remaining processes are killed, since a process may start others in the
   * meantime.
   */
  private static final int KILLS = 20;

  /** Time that a killed process may take to end, unless it hangs in the kernel. */
  private static final Duration DEATH = Duration.ofMillis(100);

  private static final Duration LOOK = Duration.ofMillis(10);

  /** Interval at which a waiting thread checks for suspended ranks. */
  static final Duration LOOK_AT_STOPPED = Duration.ofMillis(500);

  /** If processes that outlive a rank write nothing for this long, its output is complete. */
  private static final Duration SILENCE = Duration.ofMillis(500);

  /** Letters for the state of a process in /proc/PID/stat. */
  private static final char ZOMBIE = 'Z';

  private static final char STOPPED = 'T';

  /** Entry of {@code events} for lost output. Other entries are indices in {@code processes}. */
  private static final int OUTPUT_LOST = -1;

  private final int first;
  private final String mark = UUID.randomUUID().toString();
  private final Duration grace;
  private final SharedOutput output;
  private final BlockingQueue<Integer> events = new LinkedBlockingQueue<>();

  /** Lock that only one thread at a time holds while it ends all processes. */
  private final Object end = new Object();

  private boolean hasEnded;

  /** Processes in the order of their ranks. {@code this} guards this field and all below. */
  private final List<Process> processes = new ArrayList<>();

  private final List<RankLines> lines = new ArrayList<>();
  private boolean isEnding;

  /** Creates an empty set of processes, whose first one will have rank {@code first}. */
  public RankProcesses(int first, OutputStream out, OutputStream err, Duration grace) {
    this.first = first;
    this.grace = grace;
    output = new SharedOutput(out, err, () -> events.add(OUTPUT_LOST));
  }

  public SharedOutput output() {
    return output;
  }

  /**
   * Starts the next rank. Does nothing once this is closed. Rank 0 has the standard input of this
   * process, and the other ranks have none.
   *
   * @param variables are added to the variables of this process
   */
  public synchronized void start(List<String> command, Map<String, String> variables)
      throws IOException {
    if (isEnding) {
      return;
    }
    int index = processes.size();
    int rank = first + index;
    ProcessBuilder builder = new ProcessBuilder(command);
    builder.environment().putAll(variables);
    builder.environment().put(MARK, mark);
    builder.redirectInput(rank == 0 ? Redirect.INHERIT : Redirect.from(new File("/dev/null")));
    Process process = builder.start();
    processes.add(process);
    lines.add(new RankLines(rank, process.getInputStream(), output::writeOut));
    lines.add(new RankLines(rank, process.getErrorStream(), output::writeErr));
    process.onExit().thenRun(() -> events.add(index));
  }

  public Optional<Failure> awaitEnd() throws InterruptedException {
    return await((failure, left) -> false, () -> {});
  }

  /**
   * Waits until all ranks have ended, a rank fails and {@code goesOn} returns false, or output
   * cannot be written. In the last case, {@link SharedOutput#loss} has the reason.
   *
   * @param goesOn called for each rank that fails, with the number of ranks that have not ended;
   *     returns whether these continue
   * @param look called every {@link #LOOK_AT_STOPPED} while no rank ends
   * @return the rank that ended last, if it failed
   */
  public Optional<Failure> await(BiPredicate<Failure, Integer> goesOn, Runnable look)
      throws InterruptedException {
    Optional<Failure> last = Optional.empty();
    for (int left = processes().size(); left > 0; left--) {
      int index = nextEvent(look);
      if (index == OUTPUT_LOST) {
        return Optional.empty();
      }
      last = Optional.of(failure(index)).filter(each -> each.status() != 0);
      if (last.isPresent() && !goesOn.test(last.get(), left - 1)) {
        break;
      }
    }
    return last;
  }

  private int nextEvent(Runnable look) throws InterruptedException {
    while (true) {
      Integer event = events.poll(LOOK_AT_STOPPED.toMillis(), TimeUnit.MILLISECONDS);
      if (event != null) {
        return event;
      }
      look.run();
    }
  }

  /**
   * Returns the ranks that have not ended, if all of these are suspended and other ranks have
   * ended.
   */
  public List<Rank> stopped() {
    List<Process> all = processes();
    List<Rank> left = new ArrayList<>();
    for (int index = 0; index < all.size(); index++) {
      Process process = all.get(index);
      if (isRunning(process.toHandle())) {
        if (!isStopped(process.toHandle())) {
          return List.of();
        }
        left.add(new Rank(first + index, process.pid()));
      }
    }
    return left.size() < all.size() ? left : List.of();
  }

  private Failure failure(int index) {
    Process process = processes().get(index);
    return new Failure(first + index, process.pid(), process.exitValue());
  }

  /**
   * Waits up to {@code within} for the ranks that are not suspended to end on their own. Returns
   * the ranks that have ended with another status than 0.
   */
  public List<Failure> failures(Duration within) {
    long start = System.nanoTime();
    List<Process> all = processes();
    CompletableFuture<Void> end =
        CompletableFuture.allOf(
            all.stream().map(Process::onExit).toArray(CompletableFuture<?>[]::new));
    while (!end.isDone()
        && all.stream().anyMatch(each -> each.isAlive() && !isStopped(each.toHandle()))
        && System.nanoTime() - start < within.toNanos()) {
      end.copy().completeOnTimeout(null, LOOK.toMillis(), TimeUnit.MILLISECONDS).join();
    }
    return IntStream.range(0, all.size())
        .filter(index -> !all.get(index).isAlive() && all.get(index).exitValue() != 0)
        .mapToObj(this::failure)
        .toList();
  }

  /**
   * Waits until the output of ended ranks is passed on, however long the reader of the output
   * takes.
   */
  public void finishOutput() throws InterruptedException {
    for (RankLines each : lines()) {
      each.finish(SILENCE);
    }
  }

  private synchronized List<Process> processes() {
    return List.copyOf(processes);
  }

  private synchronized List<RankLines> lines() {
    return List.copyOf(lines);
  }

  /**
   * Ends all running processes and passes on their last output. No process can be started
   * afterwards.
   *
   * <p>Ranks, and then their descendants, get SIGTERM. Suspended processes get SIGKILL, since they
   * cannot handle a signal. A process that has outlived its rank, such as a log writer, first gets
   * a fifth of the grace period to end on its own. The wait for the last output takes at most half
   * of the grace period.
   */
  public void end() {
    synchronized (this) {
      isEnding = true;
    }
    synchronized (end) {
      if (!hasEnded) {
        endOnce();
        awaitLastWords();
        hasEnded = true;
      }
    }
  }

  private void endOnce() {
    Set<ProcessHandle> ranks = new HashSet<>();
    processes().forEach(process -> ranks.add(process.toHandle()));
    Set<ProcessHandle> found = new LinkedHashSet<>();
    if (!look(ranks, found)) {
      return;
    }
    long start = System.nanoTime();
    // This signals ancestors first: a parent learns of the end before its children end.
    Map<ProcessHandle, Integer> depths = new HashMap<>();
    found.forEach(each -> depths.put(each, depth(ranks, each)));
    List<ProcessHandle> below =
        found.stream()
            .filter(each -> depths.getOrDefault(each, -1) >= 0)
            .sorted(Comparator.comparing(depths::get))
            .toList();
    below.forEach(RankProcesses::terminate);
    awaitGone(found, start + grace.toNanos() / 5);
    look(ranks, found);
    found.stream()
        .filter(each -> !below.contains(each) && isRunning(each))
        .forEach(RankProcesses::terminate);
    awaitGone(found, start + grace.toNanos());
    for (int i = 0; i < KILLS && look(ranks, found); i++) {
      found.stream().filter(RankProcesses::isRunning).forEach(ProcessHandle::destroyForcibly);
      awaitGone(found, System.nanoTime() + DEATH.toNanos());
    }
  }

  @Override
  public void close() {
    end();
  }

  private static void terminate(ProcessHandle process) {
    if (isStopped(process)) {
      process.destroyForcibly();
    } else {
      process.destroy();
    }
  }

  private void awaitLastWords() {
    long deadline = System.nanoTime() + grace.toNanos() / 2;
    try {
      for (RankLines each : lines()) {
        each.join(Duration.ofNanos(deadline - System.nanoTime()));
      }
    } catch (InterruptedException e) {
      Thread.currentThread().interrupt();
    }
  }

  private boolean look(Set<ProcessHandle> ranks, Set<ProcessHandle> found) {
    ProcessHandle.allProcesses()
        .filter(each -> isRunning(each) && (depth(ranks, each) >= 0 || isMarked(each)))
        .forEach(found::add);
    return found.stream().anyMatch(RankProcesses::isRunning);
  }

  /** Returns the number of generations below the nearest rank, or -1 if there is none. */
  private static int depth(Set<ProcessHandle> ranks, ProcessHandle process) {
    Optional<ProcessHandle> at = Optional.of(process);
    int depth = 0;
    while (at.isPresent() && !ranks.contains(at.get())) {
      at = at.get().parent();
      depth++;
    }
    return at.isPresent() ? depth : -1;
  }

  /** Returns true if the environment of the process can be read and has {@link #MARK}. */
  private boolean isMarked(ProcessHandle process) {
    try {
      Path file = Path.of("/proc", "" + process.pid(), "environ");
      String variables = "\0" + Files.readString(file, StandardCharsets.ISO_8859_1);
      return variables.contains("\0" + MARK + "=" + mark + "\0");
    } catch (IOException anothersOrGone) {
      return false;
    }
  }

  private static void awaitGone(Set<ProcessHandle> all, long deadline) {
    while (all.stream().anyMatch(RankProcesses::isRunning) && System.nanoTime() - deadline < 0) {
      LockSupport.parkNanos(LOOK.toNanos());
    }
  }

  private static boolean isRunning(ProcessHandle process) {
    return process.isAlive() && state(process) != ZOMBIE;
  }

  private static boolean isStopped(ProcessHandle process) {
    return state(process) == STOPPED;
  }

  /** Returns the process's state letter in /proc; {@link #ZOMBIE} if it has ended. */
  private static char state(ProcessHandle process) {
    try {
      Path file = Path.of("/proc", "" + process.pid(), "stat");
      String stat = Files.readString(file, StandardCharsets.ISO_8859_1);
      return stat.charAt(stat.lastIndexOf(')') + 2);
    } catch (IOException gone) {
      return ZOMBIE;
    }
  }
}
