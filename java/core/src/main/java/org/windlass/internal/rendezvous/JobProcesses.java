// SPDX-License-Identifier: Apache-2.0
package org.windlass.internal.rendezvous;

import java.net.InetSocketAddress;
import java.time.Duration;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Optional;
import java.util.Set;
import org.windlass.error.MismatchException;
import org.windlass.error.UnsupportedException;
import org.windlass.internal.Native;
import org.windlass.internal.ProcessName;
import org.windlass.internal.store.Member;
import org.windlass.internal.store.SocketStore;
import org.windlass.internal.store.Store;
import org.windlass.internal.store.Texts;
import org.windlass.internal.store.Token;

/**
 * Registers the processes of a job at the store where its ranks find each other. Each process
 * writes a key, so that {@code windlass report} finds the process.
 */
public final class JobProcesses {
  private static final String PREFIX = "process/";

  private JobProcesses() {}

  /** Registers this process. {@code rank} is its first rank. */
  public static void tell(Store store, int rank, Duration deadline) {
    ProcessName process = ProcessName.own();
    Arrival own = Arrival.own(rank, process, "", "");
    // A process on another host may have the same pid.
    store.set(PREFIX + process.pid() + "/" + own.host(), own.toBytes(), deadline);
  }

  /**
   * Returns the job's registered processes on this host; none if the job has not begun to start.
   *
   * @throws WindlassException those of {@link SocketStore#connect}, Mismatch if the job runs
   *     another version, and Unsupported if it runs only on other hosts
   */
  public static Set<ProcessName> at(InetSocketAddress address, Token token, Duration deadline) {
    Member observer = Member.observer("report", Native.wl_version());
    Set<ProcessName> processes = new LinkedHashSet<>();
    String host = Arrival.ownHost();
    boolean isElsewhere = false;
    try (Store store = SocketStore.connect(address, token, observer, deadline)) {
      for (String key : store.keys(PREFIX, deadline)) {
        Optional<byte[]> value = store.get(key, deadline);
        if (value.isPresent()) {
          Arrival arrival = arrival(key, value.get());
          if (arrival.host().equals(host)) {
            processes.add(arrival.process());
          } else {
            isElsewhere = true;
          }
        }
      }
    }
    if (isElsewhere && processes.isEmpty()) {
      throw new UnsupportedException(
          "the job runs on another host, and its ranks' memory can be read only there; run this"
              + " on that host");
    }
    return processes;
  }

  private static Arrival arrival(String key, byte[] value) {
    String pid = key.substring(PREFIX.length()).replaceFirst("/.*", "");
    Arrival arrival = Arrival.of("process " + Texts.printable(pid), List.of(), value);
    String version = Native.wl_version();
    String target = Native.wl_target();
    if (!arrival.library().equals(version) || !arrival.target().equals(target)) {
      throw new MismatchException(
          "the job runs windlass " + arrival.library() + " for " + arrival.target()
              + "; this one is " + version + " for " + target + "; use the one that the job runs");
    }
    return arrival;
  }
}
