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
import org.jspecify.annotations.Nullable;
import org.windlass.error.ErrorCode;
import org.windlass.error.InvalidArgumentException;
import org.windlass.error.WindlassException;
import org.windlass.internal.Copies;
import org.windlass.internal.Native;
import org.windlass.internal.Wrapped;
import org.windlass.internal.report.RankLook;

/**
 * Reports the state of every rank of a communicator; see {@link org.windlass.Communicator#report}.
 * Ranks continue while the report is made, so the states of two ranks may be from moments that are
 * some microseconds apart. {@link #toString} is a table with a row for each rank.
 *
 * @param ranks the ranks, in rank order
 * @param failure the failure that ended the communicator; empty while it is alive
 * @param peerMemory how ranks access each other's memory outside windows, and why. The text is
 *     {@code shared: ...} if all ranks are in one process. Otherwise it is {@code process_vm_readv:
 *     ...}, {@code stage: ...} or {@code refused: ...}. Before any operation has needed such
 *     access, it is {@code not yet: ...}
 */
public record Report(List<Rank> ranks, Optional<WindlassException> failure, String peerMemory) {
  /** Largest number of awaited ranks that a line of the table names. */
  private static final int NAMED = 4;

  public Report {
    ranks = Copies.list(ranks, "ranks");
    Objects.requireNonNull(failure, "failure");
    Objects.requireNonNull(peerMemory, "peerMemory");
    for (int i = 0; i < ranks.size(); i++) {
      if (ranks.get(i).rank() != i) {
        throw new InvalidArgumentException(
            "ranks[" + i + "] is of rank " + ranks.get(i).rank() + "; they must be in rank order");
      }
    }
  }

  /** The state of a process. */
  public enum ProcessState {
    /** The process runs, or can run. */
    RUNS,
    /** The process was stopped by a signal such as SIGSTOP or by a debugger. */
    STOPPED,
    /**
     * The process ended, even if its parent has not waited for it yet. A process on another host
     * also counts as ended if that host was silent for too long or accepted no connection.
     */
    ENDED,
    /**
     * The state is unknown: the process is on another host or in another pid namespace, or {@code
     * /proc} hides it.
     */
    UNKNOWN;

    @Override
    public String toString() {
      return name().toLowerCase(Locale.ROOT);
    }
  }

  /** The process of a rank. */
  public record Process(int pid, ProcessState state) {
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

    /** Returns the process id and, unless the process runs, its state: {@code 4711 stopped}. */
    @Override
    public String toString() {
      return state == ProcessState.RUNS ? String.valueOf(pid) : pid + " " + state;
    }
  }

  /**
   * The state of one rank. For a rank on another host, {@code recent} has only the operations that
   * the rank has entered, with the time since this host got the report of each. Other details of
   * these operations, such as duration, size or awaited ranks, are not known on this host.
   *
   * @param rank the rank
   * @param host the number of its host, from 0
   * @param elsewhere whether it is on another host than the process that made this report
   * @param process its process; empty if all ranks are in one process, or if the rank has not
   *     joined yet
   * @param closed whether its communicator is closed
   * @param waitsFor the ranks for which it waits in its current operation. If it is in no
   *     operation, the first rank that has not received one of its asynchronous sends
   * @param contested number of times that one of its waits found another thread busy on the rank's
   *     core
   * @param item the piece of an operation's work that the rank runs now, such as {@code item 3 of
   *     rank 0, phase 1}. In a large operation, ranks also run pieces of other ranks
   * @param recent its last operations, at most 64, newest first
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

    /** Returns the operation that the rank is in. Empty if it is in none. */
    public Optional<Call> current() {
      return recent.stream().limit(1).filter(Call::inside).findFirst();
    }

    /** Returns true if the rank is closed or its process has ended. It then accesses nothing. */
    public boolean isGone() {
      return closed || process.filter(its -> its.state() == ProcessState.ENDED).isPresent();
    }
  }

  /**
   * One operation of one rank.
   *
   * @param sequence its sequence number, the same on all ranks. An uncounted operation has the
   *     number of the last counted operation before it
   * @param operation a name such as {@code all-to-all}
   * @param algorithm the algorithm that it uses; empty if the operation has only one
   * @param text the operation with a description of its data
   * @param uncounted whether it has no sequence number of its own. This holds for put, get, notify
   *     and wait, which only one rank calls, and for shrink, which follows a failure
   * @param bytes for a transfer, the number of bytes written to the rank. For another operation,
   *     the number of bytes between this rank and one peer, as {@code windlass bench} counts them;
   *     if peers have different numbers, the total that the rank sends
   * @param inside whether it is in progress
   * @param failure why it failed; empty if it is in progress or has succeeded
   * @param since time since the rank entered it
   * @param took time that the rank has been in it so far, or was in it; in the first microseconds
   *     it may still be zero
   * @param waited how much of {@code took} the rank waited for peers, once the operation has ended
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
   * Makes a report. For packages of Windlass.
   *
   * @hidden
   */
  @SuppressWarnings("exports")
  public static Report of(
      List<RankLook> looks, @Nullable WindlassException failure, String peerMemory) {
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
   * Returns the ranks for which {@code rank} waits. If the native side reports that there are
   * several, returns the ranks that have not entered the operation. If all ranks have entered it,
   * returns the ranks that do not wait themselves.
   */
  private static List<Integer> waitsFor(int rank, List<RankLook> looks) {
    RankLook own = looks.get(rank);
    if (own.awaited() != RankLook.SEVERAL) {
      return own.awaited() == RankLook.NOBODY ? List.of() : List.of(own.awaited());
    }
    if (!inside(own)) {
      return List.of();
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
    String format =
        "%1$4s" + (spanHosts ? "  %2$4s" : "")
            + (areProcesses ? "  %3$-" + processWidth() + "s" : "") + "  %4$7s  %5$4s  ";
    List<String> lines = new ArrayList<>();
    lines.add(String.format(format, "rank", "host", "process", "since", "busy") + "where");
    for (Rank rank : ranks) {
      String facts =
          String.format(
              format,
              rank.rank(),
              rank.host(),
              process(rank),
              duration(rank),
              rank.elsewhere() ? "" : String.valueOf(rank.contested()));
      lines.add(Wrapped.text(facts, where(rank) + awaited(rank.waitsFor())));
    }
    return failure.map(why -> why.getMessage() + "\n").orElse("") + String.join("\n", lines);
  }

  private int processWidth() {
    return ranks.stream().mapToInt(rank -> process(rank).length()).max().orElse(1);
  }

  private static String process(Rank rank) {
    return rank.process().map(Process::toString).orElse("none yet");
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

  /** Returns how long the rank has been in its present state, for the table. */
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

  private static String awaited(List<Integer> ranks) {
    String named =
        ranks.stream().limit(NAMED).map(String::valueOf).collect(Collectors.joining(", "));
    return (ranks.isEmpty() ? "" : ", waits" + Wrapped.STAYS + "for" + Wrapped.STAYS) + named
        + (ranks.size() <= NAMED ? "" : " and " + (ranks.size() - NAMED) + " more");
  }
}
