// SPDX-License-Identifier: Apache-2.0
package org.windlass.report;

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
import org.jspecify.annotations.Nullable;
import org.windlass.error.ClosedException;
import org.windlass.error.DeadlineExceededException;
import org.windlass.error.InvalidArgumentException;
import org.windlass.error.MismatchException;
import org.windlass.error.PeerLostException;
import org.windlass.error.ResourceException;
import org.windlass.error.UnsupportedException;
import org.windlass.error.WindlassException;
import org.windlass.internal.Copies;
import org.windlass.internal.Deadline;
import org.windlass.internal.Native;
import org.windlass.internal.Natives;
import org.windlass.internal.ProcessName;
import org.windlass.internal.memory.Leaks;
import org.windlass.internal.rendezvous.JobProcesses;
import org.windlass.internal.report.ObservedGroup;
import org.windlass.internal.report.RankLook;
import org.windlass.internal.store.HostAndPort;
import org.windlass.internal.store.Texts;
import org.windlass.internal.store.Token;

/**
 * Observes a job that runs in several processes on this host. The observer only reads the memory
 * that the processes share, so only their user or root can observe a job. Therefore it delays no
 * rank, and also sees ranks that hang, are stopped or have ended. Of ranks on other hosts, it sees
 * the data that this host has received.
 *
 * <pre>{@code
 * try (var job = RunningJob.at("127.0.0.1:29500", System.getenv(), ofSeconds(10))) {
 *   System.out.println(job.report());
 * }
 * }</pre>
 */
public final class RunningJob implements AutoCloseable {
  private static final Pattern PID = Pattern.compile("[0-9]{1,10}");

  /** Time in nanoseconds. If a job has no open communicator for this long, it is over. */
  private static final long IDLE_NS = 2_000_000_000;

  private final String address;

  /** Returns the processes that have registered at the job's store. */
  private final Supplier<Set<ProcessName>> source;

  /** Processes whose memory is read. Guarded by {@link #observed}. */
  private final Set<ProcessName> processes = new LinkedHashSet<>();

  /** True once {@link #processes} has all processes of the job's first communicator. */
  private boolean isComplete;

  /**
   * Time at which the job was first seen without an open communicator; 0 while a process has one.
   */
  private long idleSinceNs;

  private final Observed observed = new Observed();

  /** The open communicators. They are closed even if the program never closes the observer. */
  private static final class Observed extends Leaks.Resource {
    /** Communicators by their ids, in the order in which they were found. */
    final Map<Long, ObservedGroup> groups = new LinkedHashMap<>();

    /** Ids of communicators that all ranks have left, while the job has others. */
    final Set<Long> left = new HashSet<>();

    boolean isClosed;

    Observed() {
      super(null);
    }

    @Override
    protected synchronized void free() {
      isClosed = true;
      groups.values().forEach(ObservedGroup::close);
      groups.clear();
    }
  }

  private final class Search {
    final Set<Long> held = new HashSet<>();

    boolean isAnyAlive;

    /** First failure to read the memory of a process; null if there was none. */
    @Nullable WindlassException refusal;

    /** First failure to read a communicator; null if there was none. */
    @Nullable WindlassException other;

    void read(ProcessName process) {
      try {
        for (int number : ObservedGroup.find(process)) {
          read(process, number);
        }
        isAnyAlive = true;
      } catch (PeerLostException e) {
        // The process has ended; other processes may have its communicators.
      } catch (UnsupportedException | ResourceException e) {
        isAnyAlive = true;
        refusal = e;
      }
    }

    private void read(ProcessName process, int number) {
      try {
        ObservedGroup found = ObservedGroup.open(process, number);
        long id = found.about().id();
        held.add(id);
        if (observed.left.contains(id) || observed.groups.putIfAbsent(id, found) != null) {
          found.close();
        }
      } catch (PeerLostException e) {
        // The process has ended in the meantime.
      } catch (InvalidArgumentException | ResourceException e) {
        other = e; // for example a window, memory that was closed meanwhile, or another build's
      }
    }
  }

  private RunningJob(String address, Supplier<Set<ProcessName>> source) {
    this.address = address;
    this.source = source;
    processes.addAll(source.get());
    Leaks.watch(this, observed);
  }

  /**
   * Finds the job at an address. The address is HOST:PORT of the rendezvous of its ranks, or the
   * process id of a rank. HOST:PORT works while rank 0's process has the communicator, or while the
   * {@code windlass run} that started the job runs. The process id of a rank works for any job.
   *
   * @param address HOST:PORT or a process id
   * @param variables environment variables. For HOST:PORT, {@code WINDLASS_TOKEN_FILE} or {@code
   *     WINDLASS_TOKEN} gives the job's token
   * @param deadline time limit for the answer of the job's store
   * @throws InvalidArgumentException if the address is malformed, or another program listens there.
   *     For a process id, if the process does not exist, or has no communicator that spans
   *     processes; if its child processes have one, the message names them
   * @throws DeadlineExceededException if no program listens at the address, or it does not answer
   * @throws ResourceException if the token is wrong, or if another user runs the job
   * @throws MismatchException if the job runs another version of Windlass
   * @throws UnsupportedException if the job runs on another host or in another pid namespace
   */
  public static RunningJob at(String address, Map<String, String> variables, Duration deadline) {
    Objects.requireNonNull(address, "address");
    Map<String, String> all = Copies.map(variables, "variables");
    Deadline.nanos(deadline);
    Natives.require();
    return PID.matcher(address).matches()
        ? ofProcess(address)
        : new RunningJob(address, storeAt(address, all, deadline));
  }

  private static Supplier<Set<ProcessName>> storeAt(
      String address, Map<String, String> variables, Duration deadline) {
    if (address.contains("://")) {
      throw new UnsupportedException(
          "report: " + address + ": such a store keeps the ranks' processes only during their"
              + " start; name the process id of a rank");
    }
    InetSocketAddress named =
        HostAndPort.parse("the address of the job", address, ", or the process id of a rank");
    InetSocketAddress at = HostAndPort.resolved("report", named);
    Token token =
        Token.required(
            variables,
            "report: there is no token, which an address HOST:PORT needs; neither WINDLASS_TOKEN"
                + " nor WINDLASS_TOKEN_FILE is set");
    return () -> JobProcesses.at(at, token, deadline);
  }

  private static RunningJob ofProcess(String pid) {
    long number = Long.parseLong(pid);
    if (number < 1 || number > Integer.MAX_VALUE) {
      throw new InvalidArgumentException("report: " + pid + " is no process id");
    }
    RunningJob job;
    try {
      Set<ProcessName> one = Set.of(ProcessName.of((int) number));
      job = new RunningJob(pid, () -> one);
    } catch (PeerLostException gone) {
      throw new InvalidArgumentException(
          "report: " + gone.getMessage() + "; name one of the job's ranks that runs", gone);
    }
    try {
      Search search = job.search();
      if (job.observed.groups.isEmpty()) {
        throw search.refusal != null ? search.refusal : job.nothingIn(number, search.other);
      }
      return job;
    } catch (Throwable e) {
      job.close();
      throw e;
    }
  }

  private WindlassException nothingIn(long pid, @Nullable WindlassException other) {
    String ranks =
        ProcessHandle.of(pid).stream().flatMap(ProcessHandle::descendants).map(ProcessHandle::pid)
            .filter(this::hasCommunicator)
            .sorted()
            .limit(8)
            .map(String::valueOf)
            .collect(Collectors.joining(", "));
    String cure =
        ranks.isEmpty()
            ? "; name a process of the job's ranks. Where all ranks are threads of one process,"
                + " comm.report() tells there"
            : "; name one of those that it has started: " + ranks;
    return new InvalidArgumentException(
        "report: process " + pid + " has no communicator whose ranks live in several processes"
            + (other == null ? "" : ", as this build has them: " + other.getMessage()) + cure,
        other);
  }

  private boolean hasCommunicator(long pid) {
    try {
      Search search = new Search();
      search.read(ProcessName.of((int) pid));
      return !search.held.isEmpty();
    } catch (PeerLostException gone) {
      return false;
    }
  }

  /** Returns the address at which the job was found. */
  public String address() {
    return address;
  }

  /**
   * Reports the state of all ranks in the communicators that are open or have failed. If none is
   * open, reports the last state. The job is over once its processes have ended, or have had no
   * open communicator for 2 s.
   *
   * @throws ResourceException if this process may not read the memory of the job's processes
   * @throws UnsupportedException if these processes live in another pid namespace
   * @throws ClosedException if this object was closed
   */
  public JobReport report() {
    synchronized (observed) {
      if (observed.isClosed) {
        throw new ClosedException("report: it was closed");
      }
      if (observed.groups.isEmpty()) {
        processes.addAll(source.get());
      }
      Search search = search();
      if (observed.groups.isEmpty() && search.refusal != null) {
        throw search.refusal;
      }
      return reportOf(search);
    }
  }

  /**
   * Returns the report of the communicators that some rank has not left. If there are none, reports
   * the communicators with lost ranks. If there are none of these either, reports the first
   * communicator.
   */
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
      List<JobReport.Group> last = lost.isEmpty() ? over.subList(0, 1) : lost;
      return new JobReport(last, isIdle(now) || !search.isAnyAlive);
    }
    if (search.held.isEmpty() && search.refusal == null) {
      // A process closes its memory before the kernel reports that it has ended.
      return new JobReport(living, isIdle(now) && !living.isEmpty());
    }
    idleSinceNs = 0;
    for (JobReport.Group group : over) {
      long id = Long.parseUnsignedLong(group.id(), 16);
      observed.left.add(id);
      Objects.requireNonNull(observed.groups.remove(id)).close();
    }
    return new JobReport(living, false);
  }

  private boolean isIdle(long now) {
    idleSinceNs = idleSinceNs == 0 ? now : idleSinceNs;
    return now - idleSinceNs >= IDLE_NS;
  }

  private Search search() {
    Search search = new Search();
    List.copyOf(processes).forEach(search::read);
    if (!isComplete && !observed.groups.isEmpty()) {
      List<ProcessName> first =
          inOrder().get(0).looks().stream()
              .filter(look -> !look.elsewhere())
              .map(RankLook::process)
              .toList();
      isComplete = !first.contains(null);
      first.stream().filter(Objects::nonNull).filter(processes::add).forEach(search::read);
    }
    return search;
  }

  private List<ObservedGroup> inOrder() {
    Comparator<ObservedGroup> byAge = Comparator.comparingLong(group -> group.about().madeNs());
    return observed.groups.values().stream().sorted(byAge).toList();
  }

  private static WindlassException printable(WindlassException e) {
    return WindlassException.of(
        e.code().number(), Texts.printable(e.getMessage()), null, e.operation(), e.faultyRanks());
  }

  private static JobReport.Group reportOf(ObservedGroup group, long now) {
    ObservedGroup.About about = group.about();
    List<RankLook> looks = group.looks();
    boolean hasParent = about.parent() != 0;
    WindlassException failure = group.failure().map(RunningJob::printable).orElse(null);
    return new JobReport.Group(
        Long.toHexString(about.id()),
        hasParent ? Optional.of(Long.toHexString(about.parent())) : Optional.empty(),
        hasParent ? looks.stream().map(RankLook::former).toList() : List.of(),
        Duration.ofNanos(Math.max(0, now - about.madeNs())),
        Report.of(looks, failure, group.peerMemory()));
  }

  /** Stops observing the job, which continues. Idempotent. */
  @Override
  public void close() {
    synchronized (observed) {
      observed.free();
    }
  }

  @Override
  public String toString() {
    return "RunningJob at " + address;
  }
}
