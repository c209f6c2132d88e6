// SPDX-License-Identifier: Apache-2.0
package org.windlass.reshard.move;

import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.time.Duration;
import java.util.List;
import java.util.Optional;
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
import org.windlass.internal.NativeMemory;
import org.windlass.internal.memory.PaddedWords;
import org.windlass.report.Report;

/**
 * The ranks of this process that do a run's work, and what they share with those of the other
 * processes, if there are any: whose turn it is, signs of life, and how far the process of rank 0
 * is, which alone makes OUT. All of it lies in a window, of which every process has all parts in
 * its memory.
 */
public final class Team implements AutoCloseable {
  /** Longer than any step: a watch alone ends what makes no progress. */
  public static final Duration NO_LIMIT = Duration.ofDays(7);

  // More threads of a process do not read and write faster, and each takes part in every step.
  private static final int MOST_WORKERS = 16;

  // Words of rank 0's part.
  private static final int READS = 0;
  private static final int COPIES = 1;
  private static final int CALLS = 2;
  private static final int BEATS = 3;
  private static final int STAGE = 4;
  // Words of a rank's own part.
  private static final int REQUEST_LOW = 5;
  private static final int REQUEST_HIGH = 6;
  private static final int PROCESS = 7;
  private static final int WORDS = 8;

  /** Values of {@link #STAGE}: the files are there; OUT has its name. */
  private static final int MADE = 1;

  private static final int NAMED = 2;

  /** Of the path that follows the words of rank 0's part, its length included. */
  private static final int PATH_BYTES = 8 << 10;

  private static final Duration BEAT = Duration.ofMillis(50);
  private static final Duration LOOK = Duration.ofMillis(2);

  private final LocalGroup group;
  private final Communicator first;
  private final Duration deadline;
  private final List<Window> windows;
  private final IntToLongFunction parts;
  private final PaddedWords words;
  private final Thread heart = new Thread(this::beat, "windlass-beat");
  private volatile boolean isClosed;

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
   * Collective over all processes: they start, and compare what they are asked for.
   *
   * @param request a number that tells requests apart
   * @param deadline for which no process may be silent, or be late here
   * @throws MismatchException in every process, if one is asked for something else
   */
  public static Team open(LocalGroup group, LongSupplier request, Duration deadline) {
    long bytes = PaddedWords.bytes(WORDS) + PATH_BYTES;
    Team team = new Team(group, deadline, group.call(comm -> comm.window(bytes, deadline)));
    try {
      if (!team.isWhole()) {
        team.agree(request.getAsLong());
        if (team.isFirst()) {
          team.heart.setDaemon(true);
          team.heart.start();
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
          own.set(REQUEST_LOW, (int) request);
          own.set(REQUEST_HIGH, (int) (request >>> 32));
          own.set(PROCESS, (int) ProcessHandle.current().pid());
          comm.withDeadline(deadline).barrier();
        });
    for (int rank = 1; rank < size(); rank++) {
      PaddedWords theirs = wordsOf(rank);
      if (theirs.peek(REQUEST_LOW) != words.peek(REQUEST_LOW)
          || theirs.peek(REQUEST_HIGH) != words.peek(REQUEST_HIGH)) {
        throw new MismatchException(
            "reshard: " + name(rank) + " is asked for something else than " + name(0)
                + ", or finds something else in IN; every process takes the same layouts, rules and"
                + " dtypes, and the same IN, which nobody changes meanwhile",
            null,
            "",
            List.of(0, rank));
      }
    }
  }

  /** The ranks of this process. */
  LocalGroup group() {
    return group;
  }

  /** How many ranks there are in all processes. */
  int size() {
    return first.size();
  }

  /** Whether all of them live in this process. */
  boolean isWhole() {
    return group.size() == size();
  }

  /** Whether this is the process of rank 0, which makes OUT. */
  public boolean isFirst() {
    return first.rank() == 0;
  }

  /** The place of a rank of this process among those, from 0 on. */
  int place(Communicator own) {
    return own.rank() - first.rank();
  }

  /** How many ranks of this process read and copy. */
  int workersHere() {
    return Math.min(group.size(), MOST_WORKERS);
  }

  /** The same of all processes, of which each has as many ranks as the others. */
  int workers() {
    return size() / group.size() * workersHere();
  }

  /** The number of the next read, counted from the run's first on by whoever asks. */
  int nextRead() {
    return words.increment(READS) - 1;
  }

  /** The same of copies. */
  int nextCopy() {
    return words.increment(COPIES) - 1;
  }

  /** Tells all watches that the system has read or written something. */
  void called() {
    words.increment(CALLS);
  }

  /** How often any process has said so. */
  int calls() {
    return words.peek(CALLS);
  }

  /**
   * Collective: a window of so many bytes on every rank; this process's handles of it, of which
   * each is closed.
   */
  List<Window> window(long bytes) {
    return group.call(comm -> comm.window(bytes, NO_LIMIT));
  }

  /** Ends what any rank waits for, unless something has. */
  public void abort(String reason) {
    first.abort(reason);
  }

  /** What has ended it; empty while it lives. */
  Optional<WindlassException> failure() {
    return first.failure();
  }

  /**
   * Whom ranks wait for now, as a message ends; empty where they wait for nobody. Of several those
   * hold up the others that are stopped, or else that wait for nobody themselves.
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

  /** Tells the other processes that OUT's files are made, and where; by the first process. */
  public void made(Path content) {
    byte[] path = content.toString().getBytes(StandardCharsets.UTF_8);
    if (path.length > PATH_BYTES - Integer.BYTES) {
      throw new InvalidArgumentException(content + ": the path has " + path.length + " bytes");
    }
    path().putInt(path.length).put(path);
    words.publish(STAGE, MADE);
  }

  /** Tells the other processes that OUT has its name; by the first process. */
  public void named() {
    words.publish(STAGE, NAMED);
  }

  /**
   * Waits until OUT's files are made; in the other processes.
   *
   * @param check throws what ends the wait
   * @return where they are
   * @throws DeadlineExceededException if the first process is silent for the length of the deadline
   */
  public Path awaitMade(Runnable check) {
    await(MADE, check);
    ByteBuffer path = path();
    byte[] bytes = new byte[path.getInt()];
    path.get(bytes);
    return Path.of(new String(bytes, StandardCharsets.UTF_8));
  }

  /** Waits until OUT has its name, as {@link #awaitMade} waits. */
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
        // The first process may have ended right behind its last word.
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
            "reshard: " + name(0) + " gave no sign of life for " + deadline.toMillis() / 1e3 + " s",
            null,
            "",
            List.of(0));
      }
      LockSupport.parkNanos(LOOK.toNanos());
    }
  }

  /** While the first process makes files, verifies and puts on the disk, which have no deadline. */
  private void beat() {
    while (!isClosed) {
      words.increment(BEATS);
      LockSupport.parkNanos(BEAT.toNanos());
    }
  }

  @Override
  public void close() {
    isClosed = true;
    join(heart);
    windows.forEach(Window::close);
  }

  /** Waits for the end of a thread that ends soon. */
  private static void join(Thread thread) {
    boolean interrupted = false;
    while (thread.isAlive()) {
      LockSupport.unpark(thread);
      try {
        thread.join(1);
      } catch (InterruptedException e) {
        interrupted = true;
      }
    }
    if (interrupted) {
      Thread.currentThread().interrupt();
    }
  }
}
