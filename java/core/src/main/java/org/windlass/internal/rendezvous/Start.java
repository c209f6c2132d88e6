// SPDX-License-Identifier: Apache-2.0
package org.windlass.internal.rendezvous;

import java.lang.ref.Reference;
import java.nio.ByteBuffer;
import java.time.Duration;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.function.ToIntFunction;
import java.util.regex.Pattern;
import java.util.stream.Collectors;
import org.windlass.error.MismatchException;
import org.windlass.error.ResourceException;
import org.windlass.internal.Deadline;
import org.windlass.internal.Failures;
import org.windlass.internal.Native;
import org.windlass.internal.NativeMemory;
import org.windlass.internal.Natives;
import org.windlass.internal.ProcessName;
import org.windlass.internal.Scratch;
import org.windlass.internal.Structs;
import org.windlass.internal.UcxLibrary;

/**
 * Starts a communicator whose ranks live in several processes, by the steps in
 * docs/explanation/protocols.md. If one rank fails, all ranks fail with its reason.
 */
public final class Start {
  /** Options of the communicator in the form of the C ABI. They are the same on all ranks. */
  public record Config(
      int firstSequence, int cores, int blocks, long deadlineNs, boolean adjustThreads) {
    static final String BETWEEN = ", ";

    private static final Pattern NANOSECONDS = Pattern.compile("\\b([0-9]{1,18}) ns\\b");

    @Override
    public String toString() {
      return String.join(
          BETWEEN,
          "firstSequence=" + firstSequence,
          "cores=" + cores,
          "blocks=" + blocks,
          "deadline=" + deadlineNs + " ns",
          "adjustThreads=" + adjustThreads);
    }

    /**
     * Compares two texts of options, and returns the entries that differ: first those of {@code
     * one}, then those of {@code other}.
     */
    static List<String> difference(String one, String other) {
      List<String> ones = new ArrayList<>(List.of(one.split(BETWEEN)));
      List<String> others = new ArrayList<>(List.of(other.split(BETWEEN)));
      ones.removeAll(List.of(other.split(BETWEEN)));
      others.removeAll(List.of(one.split(BETWEEN)));
      List<String> exact = List.of(String.join(BETWEEN, ones), String.join(BETWEEN, others));
      List<String> readable = exact.stream().map(Config::readable).toList();
      return readable.get(0).equals(readable.get(1)) ? exact : readable;
    }

    /** Returns the entries with times such as {@code 60 s}, for messages. */
    private static String readable(String entries) {
      return NANOSECONDS
          .matcher(entries)
          .replaceAll(time -> Deadline.text(Duration.ofNanos(Long.parseLong(time.group(1)))));
    }
  }

  private static final String SHARE = "share";
  private static final String WIRE = "wire";

  private final StartSteps ranks;
  private final int size;
  private final Config config;
  private final Host host;

  Start(StartSteps ranks, int size, Config config, Host host) {
    this.ranks = ranks;
    this.size = size;
    this.config = config;
    this.host = host;
  }

  /**
   * Joins the other ranks, within {@code deadline}.
   *
   * @param own ranks of this process
   * @param size number of all ranks
   * @return a {@code wl_comm_t*} for each of {@code own}
   * @throws OthersGoneException if the other ranks can't join any more
   * @throws WindlassException DeadlineExceeded names the ranks that have not joined. Mismatch if
   *     ranks have different versions, options or sizes. Unsupported if hosts can't reach one
   *     another. Also Resource.
   */
  public static long[] join(
      AllGather all, List<Integer> own, int size, Config config, Host host, Duration deadline) {
    Natives.require();
    StartSteps steps = new StartSteps(all, own, size, Deadline.of(deadline));
    boolean isDone = false;
    try {
      Start start = new Start(steps, size, config, host);
      long[] handles = start.make(own, start.arrive(own));
      isDone = true;
      return handles;
    } finally {
      if (!isDone) {
        all.quit();
      }
    }
  }

  static List<String> steps(Hosts hosts) {
    return hosts.areSeveral()
        ? List.of(SHARE, WIRE, StartSteps.LAST)
        : List.of(SHARE, StartSteps.LAST);
  }

  Hosts arrive(List<Integer> own) {
    List<byte[]> told =
        ranks.gather(
            "arrive",
            () -> {
              ProcessName process = ProcessName.own();
              String options = config.toString();
              Map<Integer, byte[]> said = new LinkedHashMap<>();
              for (int rank : own) {
                said.put(rank, Arrival.own(rank, process, host.name(), options).toBytes());
              }
              return said;
            });
    List<Arrival> all = new ArrayList<>(size);
    for (int rank = 0; rank < size; rank++) {
      all.add(Arrival.of(rank, told.get(rank)));
    }
    compare(all);
    Hosts hosts = new Hosts(all);
    ranks.settle(hosts);
    return hosts;
  }

  /**
   * Runs the steps after the first one. Returns a {@code wl_comm_t*} for each rank of {@code own}.
   */
  long[] make(List<Integer> own, Hosts hosts) {
    int maker = hosts.first(own.get(0)).rank();
    int[] file = {-1};
    try {
      List<byte[]> files =
          ranks.gather(
              SHARE,
              () -> {
                file[0] = own.contains(maker) ? share(hosts) : -1;
                return ranks.forEachRank(SharedFile.of(file[0]).toBytes());
              });
      return attach(own, hosts, SharedFile.of(files.get(maker), maker));
    } finally {
      if (file[0] >= 0) {
        Native.wl_file_close(file[0]);
      }
    }
  }

  /**
   * The shared memory of a host, as named by the process that made it.
   *
   * @param number number of the file descriptor in that process; -1 for none
   * @param inode distinguishes the file from a later file with that number
   */
  private record SharedFile(int number, long inode) {
    private static final int BYTES = Integer.BYTES + Long.BYTES;

    static SharedFile of(int number) {
      return new SharedFile(number, number < 0 ? 0 : Native.wl_file_inode(number));
    }

    static SharedFile of(byte[] told, int maker) {
      if (told.length != BYTES) {
        throw new MismatchException(
            "what rank " + maker + " says about the shared memory can't be read: it has "
                + told.length + " bytes; run one version of windlass on all ranks",
            List.of(maker));
      }
      ByteBuffer words = ByteBuffer.wrap(told);
      return new SharedFile(words.getInt(), words.getLong());
    }

    byte[] toBytes() {
      return ByteBuffer.allocate(BYTES).putInt(number).putLong(inode).array();
    }
  }

  private void compare(List<Arrival> all) {
    Arrival first = all.get(0);
    for (Arrival other : all.subList(1, size)) {
      String what = null;
      if (!other.library().equals(first.library())) {
        what = "run windlass " + first.library() + " and " + other.library();
      } else if (!other.target().equals(first.target())) {
        what = "have kernels for " + first.target() + " and " + other.target();
      } else if (!other.options().equals(first.options())) {
        List<String> options = Config.difference(first.options(), other.options());
        what =
            "were given " + options.get(0) + " and " + options.get(1)
                + "; give all ranks the same options";
      }
      if (what != null) {
        throw new MismatchException(
            "ranks 0 and " + other.rank() + " " + what, List.of(0, other.rank()));
      }
    }
  }

  /** Creates the memory that the ranks of this host share. Returns its file descriptor. */
  private int share(Hosts hosts) {
    ByteBuffer numbers = hosts.areSeveral() ? NativeMemory.copy(hosts.numbers()) : null;
    int cores = config.cores() == 0 ? hosts.cores() : config.cores();
    try (Scratch scratch = Scratch.take()) {
      long address = scratch.config(Structs.GroupConfig.SIZE);
      scratch.configInt(Structs.GroupConfig.RANKS, size);
      scratch.configInt(Structs.GroupConfig.FIRST_SEQUENCE, config.firstSequence());
      scratch.configInt(Structs.GroupConfig.CORES, cores);
      scratch.configInt(Structs.GroupConfig.BLOCKS, config.blocks());
      scratch.configLong(Structs.GroupConfig.DEADLINE_NS, config.deadlineNs());
      scratch.configInt(Structs.GroupConfig.ADJUST_THREADS, config.adjustThreads() ? 1 : 0);
      if (numbers != null) {
        scratch.configLong(Structs.GroupConfig.HOSTS, NativeMemory.address(numbers));
      }
      Failures.check(Native.wl_group_share(address, scratch.out(), scratch.error()), scratch);
      return (int) scratch.outValue();
    } finally {
      Reference.reachabilityFence(numbers);
    }
  }

  private long[] attach(List<Integer> own, Hosts hosts, SharedFile shared) {
    ProcessName process = ProcessName.own();
    ProcessName maker = hosts.first(own.get(0)).process();
    long[] group = {0};
    long[] handles = new long[own.size()];
    boolean isDone = false;
    try {
      List<byte[]> wires = hosts.areSeveral() ? wires(group, own, process, maker, shared) : null;
      ranks.gather(
          StartSteps.LAST,
          () -> {
            if (wires == null) {
              group[0] = open(process, maker, shared);
            } else {
              connectWires(group[0], wires);
            }
            for (int i = 0; i < handles.length; i++) {
              int rank = own.get(i);
              handles[i] =
                  value(
                      call -> Native.wl_group_join(group[0], rank, call.out(), call.error()));
            }
            watch(group[0], process, own.get(0), hosts);
            return ranks.forEachRank(new byte[0]);
          });
      isDone = true;
      return handles;
    } finally {
      for (int i = 0; !isDone && i < handles.length; i++) {
        if (handles[i] != 0) {
          Native.wl_comm_free(handles[i]);
        }
      }
      if (group[0] != 0) {
        Native.wl_group_release(group[0]);
      }
    }
  }

  /**
   * Returns the addresses for connections. The lowest rank of each process gives the address of its
   * process.
   */
  private List<byte[]> wires(
      long[] group, List<Integer> own, ProcessName process, ProcessName maker, SharedFile shared) {
    List<byte[]> names =
        ranks.gather(
            WIRE,
            () -> {
              group[0] = open(process, maker, shared);
              Map<Integer, byte[]> said = ranks.forEachRank(new byte[0]);
              said.put(own.get(0), openWire(group[0], own));
              return said;
            });
    return names.stream().filter(name -> name.length > 0).toList();
  }

  private static long open(ProcessName process, ProcessName maker, SharedFile shared) {
    int number = shared.number();
    if (!process.equals(maker)) {
      number =
          (int)
              value(
                  call ->
                      Native.wl_file_open(
                          maker.in(call), shared.number(), call.out(), call.error()));
    }
    int file = number;
    try {
      if (Native.wl_file_inode(file) != shared.inode()) {
        throw new ResourceException(
            "process " + maker.pid() + " has given up this start, and has made new memory since");
      }
      return value(call -> Native.wl_group_attach(file, call.out(), call.error()));
    } finally {
      if (!process.equals(maker)) {
        Native.wl_file_close(file);
      }
    }
  }

  private static void watch(long group, ProcessName own, int rank, Hosts hosts) {
    Map<ProcessName, List<Integer>> processes =
        hosts.all().stream()
            .filter(each -> hosts.areTogether(each.rank(), rank) && !each.process().equals(own))
            .collect(
                Collectors.groupingBy(
                    Arrival::process,
                    Collectors.mapping(Arrival::rank, Collectors.toList())));
    processes.forEach(
        (process, theirs) -> {
          ByteBuffer list =
              NativeMemory.copy(theirs.stream().mapToInt(Integer::intValue).toArray());
          value(
              call ->
                  Native.wl_group_watch(
                      group, process.in(call), NativeMemory.address(list), theirs.size(), 0,
                      call.error()));
          Reference.reachabilityFence(list);
        });
  }

  /**
   * Opens this process for connections from other processes. Returns the address to which they
   * connect.
   *
   * @param own ranks of this process
   */
  private static byte[] openWire(long group, List<Integer> own) {
    UcxLibrary.open();
    ByteBuffer ranks = NativeMemory.copy(own.stream().mapToInt(Integer::intValue).toArray());
    long list = NativeMemory.address(ranks);
    value(call -> Native.wl_group_open_wire(group, list, own.size(), call.error()));
    Reference.reachabilityFence(ranks);
    long bytes =
        value(call -> Native.wl_group_wire_name(group, 0, 0, call.out(), call.error()));
    ByteBuffer room = Structs.allocate((int) bytes);
    long address = NativeMemory.address(room);
    value(call -> Native.wl_group_wire_name(group, address, bytes, call.out(), call.error()));
    byte[] name = new byte[room.capacity()];
    room.get(name);
    return name;
  }

  /** Makes a native call that writes a {@code long}. Returns this value, or throws the failure. */
  private static long value(ToIntFunction<Scratch> call) {
    try (Scratch scratch = Scratch.take()) {
      Failures.check(call.applyAsInt(scratch), scratch);
      return scratch.outValue();
    }
  }

  /** Connects this process to those with these addresses. */
  private void connectWires(long group, List<byte[]> names) {
    ByteBuffer all = Structs.allocate(names.stream().mapToInt(name -> name.length).sum());
    ByteBuffer lengths = Structs.allocate(names.size() * Long.BYTES);
    for (byte[] name : names) {
      all.put(name);
      lengths.putLong(name.length);
    }
    value(
        call ->
            Native.wl_group_connect(
                group, NativeMemory.address(all), NativeMemory.address(lengths), names.size(),
                host.silenceNs(), call.error()));
    Reference.reachabilityFence(all);
    Reference.reachabilityFence(lengths);
  }
}
