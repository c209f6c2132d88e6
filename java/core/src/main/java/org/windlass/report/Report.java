// SPDX-License-Identifier: Apache-2.0
package org.windlass.report;

import java.time.Duration;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Locale;
import java.util.Objects;
import java.util.Optional;
import java.util.stream.Collectors;
import java.util.stream.IntStream;
import org.windlass.error.ErrorCode;
import org.windlass.error.InvalidArgumentException;
import org.windlass.error.WindlassException;
import org.windlass.internal.Copies;
import org.windlass.internal.Native;
import org.windlass.internal.report.RankLook;

/**
 * A report of where every rank of a communicator is; see {@link org.windlass.Communicator#report}.
 * Ranks go on while it is made, so that what it says of one may be some microseconds younger than
 * of another. {@link #toString} is a table with one line a rank.
 *
 * @param ranks in rank order
 * @param failure why the communicator is dead; empty while it lives
 * @param peerMemory how ranks get at memory outside windows of one another, and why: {@code shared:
 *     ...} where all live in one process, {@code process_vm_readv: ...}, {@code stage: ...}, {@code
 *     refused: ...}, or {@code not yet: ...} until an operation has needed it
 */
public record Report(List<Rank> ranks, Optional<WindlassException> failure, String peerMemory) {
  /** Of the ranks that one waits for, how many the table names. */
  private static final int NAMED = 4;

  /** Checks the components. */
  public Report {
    ranks = Copies.list(ranks, "ranks");
    Objects.requireNonNull(failure, "failure");
    Objects.requireNonNull(peerMemory, "peerMemory");
    for (int i = 0; i < ranks.size(); i++) {
      if (ranks.get(i).rank() != i) {
        throw new InvalidArgumentException(
            "ranks[" + i + "] is of rank " + ranks.get(i).rank() + "; they stand in rank order");
      }
    }
  }

  /** What a process does. */
  public enum ProcessState {
    /** It runs, or could. */
    RUNS,
    /** By a signal such as SIGSTOP, or a debugger. */
    STOPPED,
    /**
     * By itself or by a signal, whether or not it has been waited for; on another host also where
     * that was silent, or took no connection.
     */
    ENDED,
    /** It lives on another host or in another pid namespace, or {@code /proc} hides it. */
    UNKNOWN;

    @Override
    public String toString() {
      return name().toLowerCase(Locale.ROOT);
    }
  }

  /** The process that a rank lives in. */
  public record Process(int pid, ProcessState state) {
    /** Checks the components. */
    public Process {
      Objects.requireNonNull(state, "state");
    }

    private static Optional<Process> of(RankLook look) {
      return Optional.ofNullable(look.process())
          .map(process -> new Process(process.pid(), stateOf(look.processState())));
    }

    private static ProcessState stateOf(int code) {
      return switch (code) {
        case Native.WL_PROCESS_RUNS -> ProcessState.RUNS;
        case Native.WL_PROCESS_STOPPED -> ProcessState.STOPPED;
        case Native.WL_PROCESS_ENDED -> ProcessState.ENDED;
        default -> ProcessState.UNKNOWN;
      };
    }

    /** Such as {@code 4711}, or {@code 4711 stopped}. */
    @Override
    public String toString() {
      return state == ProcessState.RUNS ? String.valueOf(pid) : pid + " " + state;
    }
  }

  /**
   * One rank. Of one that is elsewhere {@code recent} has what it has entered, each since this host
   * has known of it: nobody here knows whether it is inside, how long it was, how many bytes it
   * moves, whom it waits for and how often it found its core busy.
   *
   * @param host the number of its host, from 0 on
   * @param elsewhere whether that is another one than where this report was made
   * @param process in which it lives; empty where all ranks live in one, or it has not come yet
   * @param closed whether its communicator is closed
   * @param waitsFor the ranks that it waits for in the operation that it is in
   * @param contested how often one of its waits found another thread busy on its core
   * @param item the piece of an operation's work that it runs, as {@code item 3 of rank 0, phase
   *     1}: ranks run one another's where an operation is large
   * @param recent its last calls, at most 64, the newest first
   */
  public record Rank(
      int rank,
      int host,
      boolean elsewhere,
      Optional<Process> process,
      boolean closed,
      List<Integer> waitsFor,
      int contested,
      Optional<String> item,
      List<Call> recent) {
    /** Checks the components. */
    public Rank {
      if (rank < 0 || rank >= Native.WL_MAX_RANKS) {
        throw new InvalidArgumentException(
            "rank is " + rank + "; it must lie in [0, " + Native.WL_MAX_RANKS + ")");
      }
      if (host < 0) {
        throw new InvalidArgumentException("host is " + host + "; hosts count from 0");
      }
      Objects.requireNonNull(process, "process");
      waitsFor = Copies.list(waitsFor, "waitsFor");
      Objects.requireNonNull(item, "item");
      recent = Copies.list(recent, "recent");
    }

    /** The operation that it is in; empty while it is in none. */
    public Optional<Call> current() {
      return recent.stream().limit(1).filter(Call::inside).findFirst();
    }

    /** Whether it touches nothing any more: it is closed, or its process has ended. */
    public boolean isGone() {
      return closed || process.filter(its -> its.state() == ProcessState.ENDED).isPresent();
    }
  }

  /**
   * One operation of one rank.
   *
   * @param sequence its number, the same on all ranks; of an uncounted operation, that of the last
   *     one before
   * @param operation such as {@code all-to-all}
   * @param algorithm the one that moves it; empty where the operation has one alone
   * @param text the operation with what it moves
   * @param uncounted whether it is one that ranks don't count: a put, get, notify or wait, which is
   *     the rank's own, or a shrink, which follows a failure
   * @param bytes of one part, as {@code windlass bench} counts them; what the rank sends, where
   *     parts differ in size; what a transfer writes to the rank
   * @param inside whether it is in progress
   * @param failure why it ended, unless it is in progress or ended well
   * @param since how long ago it was entered
   * @param took how long the rank has been, or was, inside; zero for some microseconds
   * @param waited how much of that it waited, once it has ended
   */
  public record Call(
      int sequence,
      String operation,
      Optional<String> algorithm,
      String text,
      boolean uncounted,
      long bytes,
      boolean inside,
      Optional<ErrorCode> failure,
      Duration since,
      Duration took,
      Duration waited) {
    /** Checks the components. */
    public Call {
      Objects.requireNonNull(operation, "operation");
      Objects.requireNonNull(algorithm, "algorithm");
      Objects.requireNonNull(text, "text");
      Objects.requireNonNull(failure, "failure");
      Objects.requireNonNull(since, "since");
      Objects.requireNonNull(took, "took");
      Objects.requireNonNull(waited, "waited");
    }

    private static Call of(RankLook.Recorded recorded, long now) {
      long left = recorded.inside() ? now : recorded.leftNs();
      long entered = recorded.enteredNs() == 0 ? left : recorded.enteredNs();
      return new Call(
          recorded.sequence(),
          Native.wl_operation_name(recorded.operation()),
          Optional.of(recorded.algorithm())
              .filter(code -> code != Native.WL_AUTO)
              .map(Native::wl_algorithm_name),
          recorded.text(),
          recorded.uncounted(),
          recorded.bytes(),
          recorded.inside(),
          Arrays.stream(ErrorCode.values())
              .filter(code -> code.number() == recorded.code())
              .findFirst(),
          between(entered, now),
          between(entered, left),
          Duration.ofNanos(recorded.waitedNs()));
    }

    private static Duration between(long from, long to) {
      return Duration.ofNanos(Math.max(0, to - from));
    }

    @Override
    public String toString() {
      return text + (uncounted ? " after #" : " #") + Integer.toUnsignedString(sequence);
    }
  }

  /**
   * For packages of Windlass.
   *
   * @hidden
   */
  @SuppressWarnings("exports")
  public static Report of(List<RankLook> looks, WindlassException failure, String peerMemory) {
    long now = Native.wl_clock_ns();
    List<Rank> ranks =
        IntStream.range(0, looks.size())
            .mapToObj(
                rank -> {
                  RankLook look = looks.get(rank);
                  return new Rank(
                      rank,
                      look.host(),
                      look.elsewhere(),
                      Process.of(look),
                      look.closed(),
                      waitsFor(rank, looks),
                      look.contested(),
                      Optional.ofNullable(look.item()),
                      look.recorded().stream().map(one -> Call.of(one, now)).toList());
                })
            .toList();
    return new Report(ranks, Optional.ofNullable(failure), peerMemory);
  }

  /**
   * Whom {@code rank} waits for. Where the native side says "several": those that have not entered
   * or, when all have, those that don't wait themselves.
   */
  private static List<Integer> waitsFor(int rank, List<RankLook> looks) {
    RankLook own = looks.get(rank);
    if (!inside(own) || own.awaited() == RankLook.NOBODY) {
      return List.of();
    }
    if (own.awaited() != RankLook.SEVERAL) {
      return List.of(own.awaited());
    }
    int sequence = own.recorded().get(0).sequence();
    List<Integer> late =
        IntStream.range(0, looks.size())
            .filter(peer -> !entered(looks.get(peer), sequence))
            .boxed()
            .toList();
    if (!late.isEmpty()) {
      return late;
    }
    return IntStream.range(0, looks.size())
        .filter(peer -> peer != rank && works(looks.get(peer), sequence))
        .boxed()
        .toList();
  }

  private static boolean inside(RankLook look) {
    return !look.recorded().isEmpty()
        && look.recorded().get(0).inside();
  }

  private static boolean entered(RankLook look, int sequence) {
    return !look.recorded().isEmpty() && look.recorded().get(0).sequence() - sequence >= 0;
  }

  private static boolean works(RankLook look, int sequence) {
    return inside(look)
        && look.recorded().get(0).sequence() == sequence
        && !look.recorded().get(0).uncounted()
        && look.awaited() == RankLook.NOBODY;
  }

  @Override
  public String toString() {
    boolean areProcesses = ranks.stream().anyMatch(rank -> rank.process().isPresent());
    boolean spanHosts = ranks.stream().anyMatch(Rank::elsewhere);
    List<List<String>> rows = new ArrayList<>();
    rows.add(List.of("rank", "host", "process", "where", "since", "contested", "waits for"));
    for (Rank rank : ranks) {
      rows.add(
          List.of(
              String.valueOf(rank.rank()),
              String.valueOf(rank.host()),
              rank.process().map(Process::toString).orElse("none yet"),
              where(rank),
              duration(rank),
              rank.elsewhere() ? "" : String.valueOf(rank.contested()),
              names(rank.waitsFor())));
    }
    String format =
        "%1$4s  " + (spanHosts ? "%2$4s  " : "")
            + (areProcesses ? "%3$-" + width(rows, 2) + "s  " : "") + "%4$-" + width(rows, 3)
            + "s  %5$8s  %6$9s  %7$s";
    String table =
        rows.stream()
            .map(row -> String.format(Locale.ROOT, format, row.toArray()).stripTrailing())
            .collect(Collectors.joining("\n"));
    return failure.map(why -> why.getMessage() + "\n").orElse("") + table;
  }

  private static int width(List<List<String>> rows, int column) {
    return rows.stream().mapToInt(row -> row.get(column).length()).max().orElse(1);
  }

  private static String where(Rank rank) {
    String closed = rank.closed() ? "closed, " : "";
    if (rank.recent().isEmpty()) {
      return closed + "no call yet";
    }
    Call last = rank.recent().get(0);
    if (last.inside()) {
      return closed + "in " + last + rank.item().map(item -> ", at " + item).orElse("");
    }
    if (rank.elsewhere()) {
      return closed + "entered " + last;
    }
    return closed + last.failure().map(code -> code + " in ").orElse("left ") + last;
  }

  /** How long it has been where it is. */
  private static String duration(Rank rank) {
    if (rank.recent().isEmpty()) {
      return "";
    }
    Call last = rank.recent().get(0);
    Duration since = last.inside() ? last.since() : last.since().minus(last.took());
    if (since.getSeconds() >= 1) {
      return String.format(Locale.ROOT, "%.1f s", since.getSeconds() + since.getNano() / 1e9);
    }
    return since.toMillis() >= 1 ? since.toMillis() + " ms" : since.toNanos() / 1000 + " us";
  }

  private static String names(List<Integer> ranks) {
    String named =
        ranks.stream().limit(NAMED).map(String::valueOf).collect(Collectors.joining(", "));
    return ranks.size() <= NAMED ? named : named + " and " + (ranks.size() - NAMED) + " more";
  }
}
