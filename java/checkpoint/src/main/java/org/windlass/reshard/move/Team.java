// SPDX-License-Identifier: Apache-2.0
package org.windlass.reshard.move;

import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.time.Duration;
import java.util.List;
import java.util.Optional;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.locks.LockSupport;
import java.util.function.IntToLongFunction;
import java.util.function.LongSupplier;
import java.util.function.Predicate;
import java.util.stream.Collectors;
import org.windlass.Communicator;
import org.windlass.LocalGroup;
import org.windlass.Window;
import org.windlass.error.DeadlineExceededException;
import org.windlass.error.InvalidArgumentException;
import org.windlass.error.MismatchException;
import org.windlass.error.WindlassException;
import org.windlass.internal.Daemon;
import org.windlass.internal.NativeMemory;
import org.windlass.internal.memory.PaddedWords;
import org.windlass.report.Report;

/**
 * The ranks of this process that work on a run, and the state that they share with other processes.
 *
 * <p>The state contains counters that distribute the work, heartbeats, and the progress of the
 * process of rank 0. Only that process creates OUT. The state is in a {@link org.windlass.Window},
 * and every process maps all ranks' parts of it.
 */
public final class Team implements AutoCloseable {
  /**
   * Time limit that is longer than any step. A {@link ProgressWatch} ends work that makes no
   * progress.
   */
  public static final Duration NO_LIMIT = Duration.ofDays(7);

  /** Largest number of threads of a process that read and write. More are not faster. */
  public static final int MOST_WORKERS = 8;

  /** Counter of tiles that threads have taken. */
  static final int TILES = 0;

  /** Counter of system calls that have read bytes. */
  static final int CALLS = 1;

  /** Counter of written bytes. */
  static final int MOVED = 2;

  /** Counter of bytes that target ranks took from other ranks' files. */
  static final int SENT = 3;

  /** Counter of bytes that target ranks took from their own files. */
  static final int LOCAL = 4;

  // Indices of further words in rank 0's part.
  private static final int BEATS = 5;
  private static final int STAGE = 6;
  // Indices of words in a rank's own part.
  private static final int REQUEST = 7;
  private static final int PROCESS = 8;
  private static final int WORDS = 9;

  /**
   * Value of the word {@link #STAGE}: the files exist. The next value means that OUT has its name.
   */
  private static final int MADE = 1;

  private static final int NAMED = 2;

  /**
   * Size in bytes of a buffer after rank 0's words, for the path of OUT's files and its length
   * field. Rank 0 writes the path there, and other processes read it.
   */
  private static final int PATH_BYTES = 8 << 10;

  private static final Duration BEAT = Duration.ofMillis(50);
  private static final Duration LOOK = Duration.ofMillis(2);

  private final LocalGroup group;
  private final Communicator first;
  private final Duration deadline;
  private final List<Window> windows;
  private final IntToLongFunction parts;
  private final PaddedWords words;
  private final CountDownLatch closed = new CountDownLatch(1);
  private CompletableFuture<Void> heart = CompletableFuture.completedFuture(null);

  private Team(LocalGroup group, Duration deadline, List<Window> windows) {
    this.group = group;
    this.first = group.communicators().get(0);
    this.deadline = deadline;
    this.windows = windows;
    this.parts = windows.get(0)::address;
    this.words = wordsOf(0);
  }

  private PaddedWords wordsOf(int rank) {
    return new PaddedWords(parts.applyAsLong(rank), WORDS);
  }

  /**
   * Starts the team in all processes, and compares their requests. This is a collective operation.
   *
   * @param request returns a number that identifies the request
   * @param deadline how long a process may be silent, or how long it may take to join
   * @throws MismatchException in every process, if the requests differ
   */
  public static Team open(LocalGroup group, LongSupplier request, Duration deadline) {
    long bytes = PaddedWords.bytes(WORDS) + PATH_BYTES;
    Team team = new Team(group, deadline, group.call(comm -> comm.window(bytes, deadline)));
    try {
      if (!team.isWhole()) {
        team.agree(request.getAsLong());
        if (team.isFirst()) {
          team.heart = Daemon.run("windlass-beat", team::beat);
        }
      }
      return team;
    } catch (Throwable failure) {
      team.close();
      throw failure;
    }
  }

  private void agree(long request) {
    group.run(
        comm -> {
          PaddedWords own = wordsOf(comm.rank());
          own.addLong(REQUEST, request);
          own.set(PROCESS, (int) ProcessHandle.current().pid());
          comm.withDeadline(deadline).barrier();
        });
    for (int rank = 1; rank < size(); rank++) {
      PaddedWords theirs = wordsOf(rank);
      if (theirs.peekLong(REQUEST) != words.peekLong(REQUEST)) {
        throw new MismatchException(
            "reshard: " + name(rank) + " has another request than " + name(0)
                + ", or finds other data in IN; give every process the same layouts, rules and"
                + " dtypes, and the same IN, and don't change IN during the run",
            null,
            "",
            List.of(0, rank));
      }
    }
  }

  LocalGroup group() {
    return group;
  }

  int size() {
    return first.size();
  }

  boolean isWhole() {
    return group.size() == size();
  }

  /** Returns true if rank 0 is in this process. The process of rank 0 creates OUT. */
  public boolean isFirst() {
    return first.rank() == 0;
  }

  /** Returns whether a rank reads and writes. The first MOST_WORKERS ranks of a process do. */
  boolean works(Communicator own) {
    return own.rank() - first.rank() < MOST_WORKERS;
  }

  /** Adds to a counter of all processes, and returns the previous value. */
  long add(int counter, long value) {
    return words.addLong(counter, value);
  }

  long get(int counter) {
    return words.peekLong(counter);
  }

  /**
   * Aborts the communicator, so that the waits of all ranks end with this reason. Does nothing if
   * it has failed already.
   */
  public void abort(String reason) {
    first.abort(reason);
  }

  /** Returns the failure that has ended the team. Empty if it has not failed. */
  Optional<WindlassException> failure() {
    return first.failure();
  }

  /**
   * Returns the end of a message that names the ranks for which other ranks wait now. These are the
   * suspended ranks, if there are any, and otherwise the ranks that do not wait themselves. The
   * text is empty if no rank waits.
   */
  String awaited() {
    List<Report.Rank> all = first.report().ranks();
    List<Report.Rank> awaited =
        all.stream().flatMap(rank -> rank.waitsFor().stream()).distinct().sorted().map(all::get)
            .toList();
    List<Predicate<Report.Rank>> signs =
        List.of(Team::isStopped, rank -> rank.waitsFor().isEmpty(), rank -> true);
    String names =
        signs.stream()
            .map(sign -> awaited.stream().filter(sign).toList())
            .filter(found -> !found.isEmpty())
            .findFirst()
            .orElse(List.of())
            .stream()
            .limit(4)
            .map(rank -> name(rank.rank()))
            .collect(Collectors.joining(", "));
    return names.isEmpty() ? "" : "; the others wait for " + names;
  }

  private static boolean isStopped(Report.Rank rank) {
    return rank.process().filter(its -> its.state() == Report.ProcessState.STOPPED).isPresent();
  }

  private String name(int rank) {
    return "rank " + rank + (isWhole() ? "" : " (process " + wordsOf(rank).peek(PROCESS) + ")");
  }

  /**
   * Reports to the other processes that OUT's files exist. The process of rank 0 calls it.
   *
   * @param content the path of the files
   */
  public void made(Path content) {
    byte[] path = content.toString().getBytes(StandardCharsets.UTF_8);
    if (path.length > PATH_BYTES - Integer.BYTES) {
      throw new InvalidArgumentException(content + ": the path has " + path.length + " bytes");
    }
    path().putInt(path.length).put(path);
    words.publish(STAGE, MADE);
  }

  /** Reports to the other processes that OUT has its name. The process of rank 0 calls it. */
  public void named() {
    words.publish(STAGE, NAMED);
  }

  /**
   * Waits until OUT's files exist. The processes without rank 0 call it.
   *
   * @param check throws the exception that ends the wait
   * @return the path of the files
   * @throws DeadlineExceededException if the process of rank 0 is silent for the length of the
   *     deadline
   */
  public Path awaitMade(Runnable check) {
    await(MADE, check);
    ByteBuffer path = path();
    byte[] bytes = new byte[path.getInt()];
    path.get(bytes);
    return Path.of(new String(bytes, StandardCharsets.UTF_8));
  }

  /** Waits until OUT has its name. Throws as {@link #awaitMade} does. */
  public void awaitNamed(Runnable check) {
    await(NAMED, check);
  }

  private ByteBuffer path() {
    return NativeMemory.buffer(parts.applyAsLong(0) + PaddedWords.bytes(WORDS), PATH_BYTES);
  }

  private void await(int stage, Runnable check) {
    int beats = words.peek(BEATS);
    long since = System.nanoTime();
    while (words.read(STAGE) < stage) {
      try {
        check.run();
      } catch (WindlassException ended) {
        // Rank 0's process may have ended right after its last message.
        if (words.read(STAGE) >= stage) {
          return;
        }
        throw ended;
      }
      if (words.peek(BEATS) != beats) {
        beats = words.peek(BEATS);
        since = System.nanoTime();
      } else if (System.nanoTime() - since > deadline.toNanos()) {
        throw new DeadlineExceededException(
            "reshard: " + name(0) + " was silent for " + deadline.toMillis() / 1e3 + " s",
            null,
            "",
            List.of(0));
      }
      LockSupport.parkNanos(LOOK.toNanos());
    }
  }

  /**
   * Sends heartbeats while the process of rank 0 creates files, verifies, and syncs, since those
   * steps have no deadline.
   */
  private void beat() {
    try {
      do {
        words.increment(BEATS);
      } while (!closed.await(BEAT.toMillis(), TimeUnit.MILLISECONDS));
    } catch (InterruptedException impossible) {
      throw new AssertionError("nobody interrupts this thread", impossible);
    }
  }

  @Override
  public void close() {
    closed.countDown();
    Daemon.join(heart);
    windows.forEach(Window::close);
  }
}
