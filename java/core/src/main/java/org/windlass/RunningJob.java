// SPDX-License-Identifier: Apache-2.0
package org.windlass;

import java.net.InetSocketAddress;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.HashSet;
import java.util.LinkedHashMap;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.Optional;
import java.util.Set;
import java.util.function.Supplier;
import java.util.regex.Pattern;
import java.util.stream.Collectors;
import org.windlass.internal.Copies;
import org.windlass.internal.Deadline;
import org.windlass.internal.Leaks;
import org.windlass.internal.Native;
import org.windlass.internal.Natives;
import org.windlass.internal.ObservedGroup;
import org.windlass.internal.ProcessName;
import org.windlass.internal.RankLook;
import org.windlass.internal.rendezvous.JobProcesses;
import org.windlass.internal.store.HostAndPort;
import org.windlass.internal.store.Texts;
import org.windlass.internal.store.Token;

/**
 * A job that runs on this host in several processes, as one sees it that is none of them. It reads
 * what the processes share, as their user or root may, and writes nothing there: it holds up no
 * rank, and sees ranks that hang, whose processes are stopped or have ended. Of the ranks that a
 * job has on other hosts it sees what this one was told.
 *
 * <pre>{@code
 * try (var job = RunningJob.at("127.0.0.1:29500", System.getenv(), ofSeconds(10))) {
 *   System.out.println(job.report());
 * }
 * }</pre>
 */
public final class RunningJob implements AutoCloseable {
  private static final Pattern PID = Pattern.compile("[0-9]{1,10}");

  /** In which a process ends that has closed what it held, or else makes the next communicator. */
  private static final long ENDING_NS = 2_000_000_000;

  private final String address;

  /** Asks the job's store for the processes that have told of themselves there. */
  private final Supplier<Set<ProcessName>> source;

  /** That are looked into; guarded by {@link #seen}. */
  private final Set<ProcessName> processes = new LinkedHashSet<>();

  /** Whether those of the job's first communicator are among them. */
  private boolean isComplete;

  /** Since when no process has a communicator that goes on; 0 while one has. */
  private long idleNs;

  private final Seen seen = new Seen();

  /** What outlives an object that nobody closes. */
  private static final class Seen extends Leaks.Resource {
    /** By id, in the order in which they were found. */
    final Map<Long, ObservedGroup> groups = new LinkedHashMap<>();

    /** The ids of those that all ranks had left while others went on. */
    final Set<Long> left = new HashSet<>();

    boolean isClosed;

    Seen() {
      super(null);
    }

    @Override
    protected synchronized void free() {
      isClosed = true;
      groups.values().forEach(ObservedGroup::close);
      groups.clear();
    }
  }

  /** One look through the memory that the processes share. */
  private final class Search {
    /** The communicators that a process which lives has. */
    final Set<Long> held = new HashSet<>();

    /** Whether a process of those that are looked into has not ended. */
    boolean isAnyThere;

    /** Why a process could not be looked into; null where all could. */
    WindlassException refusal;

    /** Why memory that one has was none of a communicator; null where all was. */
    WindlassException other;

    void look(ProcessName process) {
      try {
        for (int number : ObservedGroup.find(process, WindlassException::of)) {
          look(process, number);
        }
        isAnyThere = true;
      } catch (PeerLostException e) {
        // What it had is gone with it, or others have it too.
      } catch (UnsupportedException | ResourceException e) {
        isAnyThere = true;
        refusal = e;
      }
    }

    private void look(ProcessName process, int number) {
      try {
        ObservedGroup found = ObservedGroup.open(process, number, WindlassException::of);
        long id = found.about().id();
        held.add(id);
        if (seen.left.contains(id) || seen.groups.putIfAbsent(id, found) != null) {
          found.close();
        }
      } catch (PeerLostException e) {
        // As above.
      } catch (InvalidArgumentException | ResourceException e) {
        other = e; // a window's, or one that was closed meanwhile, or another build's
      }
    }
  }

  private RunningJob(String address, Supplier<Set<ProcessName>> source) {
    this.address = address;
    this.source = source;
    processes.addAll(source.get());
    Leaks.watch(this, seen);
  }

  /**
   * The job at {@code address}: HOST:PORT, where its ranks have met and rank 0's process listens as
   * long as it has the communicator, or {@code windlass run} as long as it runs; or the process id
   * of one of its ranks, wherever they met.
   *
   * @param variables for HOST:PORT, those that have the job's token: {@code WINDLASS_TOKEN_FILE} or
   *     {@code WINDLASS_TOKEN}
   * @param deadline for the job's store to answer
   * @throws InvalidArgumentException if it is no address, or something else listens there, or
   *     there is no such process, or it has no communicator that spans processes; those that it has
   *     started and that have one, as those of a launcher, are named
   * @throws DeadlineExceededException if nobody listens there, or answers
   * @throws ResourceException if the token is another one, or this process may not look into the
   *     job's: it runs as another user
   * @throws MismatchException if the job runs another version
   * @throws UnsupportedException if the job runs on another host or in another pid namespace
   */
  public static RunningJob at(String address, Map<String, String> variables, Duration deadline) {
    Objects.requireNonNull(address, "address");
    Map<String, String> all = Copies.map(variables, "variables");
    Deadline.nanos(deadline, WindlassException::of);
    Natives.require(WindlassException::of);
    return PID.matcher(address).matches()
        ? ofProcess(address)
        : new RunningJob(address, storeAt(address, all, deadline));
  }

  private static Supplier<Set<ProcessName>> storeAt(
      String address, Map<String, String> variables, Duration deadline) {
    if (address.contains("://")) {
      throw new UnsupportedException(
          "report: "
              + address
              + ": what ranks tell of themselves at such a store goes with their start; name the"
              + " process id of a rank");
    }
    InetSocketAddress named =
        HostAndPort.parse(
            "the address of the job",
            address,
            ", or the process id of a rank",
            WindlassException::of);
    InetSocketAddress at = HostAndPort.resolved("report", named, WindlassException::of);
    Token token =
        Token.fromEnvironment(variables, WindlassException::of)
            .orElseThrow(
                () ->
                    new InvalidArgumentException(
                        "report: there is no token, which the job asks for; set"
                            + " WINDLASS_TOKEN_FILE to that of its ranks, or name the process id of"
                            + " one of them"));
    return () -> JobProcesses.at(at, token, deadline, WindlassException::of);
  }

  /** The one of those with whom that process made its first communicator. */
  private static RunningJob ofProcess(String pid) {
    long number = Long.parseLong(pid);
    if (number < 1 || number > Integer.MAX_VALUE) {
      throw new InvalidArgumentException("report: " + pid + " is no process id");
    }
    Set<ProcessName> one = Set.of(named(pid, (int) number));
    RunningJob job = new RunningJob(pid, () -> one);
    try {
      Search search = job.search();
      if (job.seen.groups.isEmpty()) {
        throw search.refusal != null
            ? search.refusal
            : nothingIn(pid, search.other, job.startedBy(number));
      }
      return job;
    } catch (Throwable e) {
      job.close();
      throw e;
    }
  }

  private static ProcessName named(String pid, int number) {
    try {
      return ProcessName.of(number, WindlassException::of);
    } catch (PeerLostException gone) {
      throw new InvalidArgumentException(
          "report: " + gone.getMessage() + "; name one of the job's ranks that runs", gone);
    }
  }

  /** Of what that process has started, or what is below, those that have a communicator. */
  private List<Long> startedBy(long pid) {
    return ProcessHandle.of(pid).stream()
        .flatMap(ProcessHandle::descendants)
        .map(ProcessHandle::pid)
        .filter(this::hasCommunicator)
        .sorted()
        .toList();
  }

  private boolean hasCommunicator(long pid) {
    try {
      Search search = new Search();
      search.look(ProcessName.of((int) pid, WindlassException::of));
      return !search.held.isEmpty();
    } catch (PeerLostException gone) {
      return false;
    }
  }

  private static WindlassException nothingIn(
      String pid, WindlassException other, List<Long> ranks) {
    String cure =
        ranks.isEmpty()
            ? "; name a process of the job's ranks. Where all ranks are threads of one process,"
                + " comm.report() tells there"
            : "; name one of those that it has started: "
                + ranks.stream().limit(8).map(String::valueOf).collect(Collectors.joining(", "));
    return new InvalidArgumentException(
        "report: process "
            + pid
            + " has no communicator whose ranks live in several processes"
            + (other == null ? "" : ", as this build has them: " + other.getMessage())
            + cure,
        other);
  }

  /** What it was found by. */
  public String address() {
    return address;
  }

  /**
   * Where all ranks are, of the communicators that are open and of those that failed. Where none is
   * open, where they were last: the job is over then once its processes have ended, or have made no
   * other for 2 s.
   *
   * @throws ResourceException if this process may not look into the job's
   * @throws UnsupportedException if they live in another pid namespace
   * @throws ClosedException once this is closed
   */
  public JobReport report() {
    synchronized (seen) {
      if (seen.isClosed) {
        throw new ClosedException("report: it was closed");
      }
      if (seen.groups.isEmpty()) {
        processes.addAll(source.get());
      }
      Search search = search();
      if (seen.groups.isEmpty() && search.refusal != null) {
        throw search.refusal;
      }
      return reportOf(search);
    }
  }

  /** Of those that some rank is in; where none is, of those that ranks are lost in, or the first. */
  private JobReport reportOf(Search search) {
    long now = Native.wl_clock_ns();
    List<JobReport.Group> living = new ArrayList<>();
    List<JobReport.Group> over = new ArrayList<>();
    for (ObservedGroup group : inOrder()) {
      JobReport.Group made = reportOf(group, now);
      boolean isOver =
          made.report().ranks().stream().allMatch(rank -> rank.elsewhere() || rank.isGone());
      (isOver ? over : living).add(made);
    }
    if (living.isEmpty() && !over.isEmpty()) {
      List<JobReport.Group> lost = over.stream().filter(group -> !group.lost().isEmpty()).toList();
      return new JobReport(
          lost.isEmpty() ? over.subList(0, 1) : lost, isIdle(now) || !search.isAnyThere);
    }
    if (search.held.isEmpty() && search.refusal == null) {
      // A process that ends has closed what it held before it counts as ended.
      return new JobReport(living, isIdle(now) && !living.isEmpty());
    }
    idleNs = 0;
    for (JobReport.Group group : over) {
      seen.left.add(idOf(group));
      seen.groups.remove(idOf(group)).close();
    }
    return new JobReport(living, false);
  }

  /** Whether no process has had a communicator that goes on for a while. */
  private boolean isIdle(long now) {
    idleNs = idleNs == 0 ? now : idleNs;
    return now - idleNs >= ENDING_NS;
  }

  private static long idOf(JobReport.Group group) {
    return Long.parseUnsignedLong(group.id(), 16);
  }

  private Search search() {
    Search search = new Search();
    List.copyOf(processes).forEach(search::look);
    if (!isComplete && !seen.groups.isEmpty()) {
      List<ProcessName> first =
          inOrder().get(0).looks().stream()
              .filter(look -> !look.elsewhere())
              .map(RankLook::process)
              .toList();
      isComplete = !first.contains(null);
      Set<ProcessName> looked = Set.copyOf(processes);
      first.stream().filter(Objects::nonNull).forEach(processes::add);
      processes.stream().filter(process -> !looked.contains(process)).forEach(search::look);
    }
    return search;
  }

  private List<ObservedGroup> inOrder() {
    return seen.groups.values().stream()
        .sorted(Comparator.comparingLong((ObservedGroup group) -> group.about().madeNs()))
        .toList();
  }

  private static JobReport.Group reportOf(ObservedGroup group, long now) {
    ObservedGroup.About about = group.about();
    List<RankLook> looks = group.looks();
    boolean hasParent = about.parent() != 0;
    return new JobReport.Group(
        Long.toHexString(about.id()),
        hasParent ? Optional.of(Long.toHexString(about.parent())) : Optional.empty(),
        hasParent ? looks.stream().map(RankLook::former).toList() : List.of(),
        Duration.ofNanos(Math.max(0, now - about.madeNs())),
        Report.of(looks, failureOf(group), group.peerMemory(WindlassException::of)));
  }

  private static WindlassException failureOf(ObservedGroup group) {
    return (WindlassException)
        group.failure(
            (code, message, cause, operation, culprits) ->
                WindlassException.of(
                    code, Texts.printable(message), cause, operation, culprits));
  }

  /** Forgets the job, which goes on. Idempotent. */
  @Override
  public void close() {
    synchronized (seen) {
      seen.free();
    }
  }

  @Override
  public String toString() {
    return "RunningJob at " + address;
  }
}
