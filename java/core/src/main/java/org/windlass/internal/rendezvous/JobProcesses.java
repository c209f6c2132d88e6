// SPDX-License-Identifier: Apache-2.0
package org.windlass.internal.rendezvous;

import java.io.IOException;
import java.net.InetSocketAddress;
import java.time.Duration;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Optional;
import java.util.Set;
import org.windlass.internal.FailureMaker;
import org.windlass.internal.Native;
import org.windlass.internal.ProcessName;
import org.windlass.internal.store.Member;
import org.windlass.internal.store.SocketStore;
import org.windlass.internal.store.Store;
import org.windlass.internal.store.Texts;
import org.windlass.internal.store.Token;

/**
 * The processes of a job, as they tell of themselves at the store where its ranks meet: each in a
 * key of its own, which stays as long as the store, for those who look at the job from outside.
 */
public final class JobProcesses {
  private static final String PREFIX = "process/";

  /** What such a one is called to the store. */
  private static final String OBSERVER = "report";

  private JobProcesses() {}

  /**
   * Tells of this process.
   *
   * @param rank its first one
   */
  public static void tell(Store store, int rank, Duration deadline, FailureMaker failures) {
    ProcessName process = ProcessName.own(failures);
    Arrival own = Arrival.own(rank, process, "", "", failures);
    // Another host may have that pid, too.
    store.set(PREFIX + process.pid() + "/" + own.host(), own.toBytes(), deadline);
  }

  /**
   * Those of this host that have told of themselves at a store; none where the job has not begun to
   * start.
   *
   * @param deadline for the store to answer
   * @param failures makes what is thrown: as {@link SocketStore#connect} does, and Mismatch where
   *     the job runs another version, Unsupported where it runs on other hosts alone
   */
  public static Set<ProcessName> at(
      InetSocketAddress address, Token token, Duration deadline, FailureMaker failures) {
    Member own = Member.observer(OBSERVER, Native.wl_version());
    Set<ProcessName> processes = new LinkedHashSet<>();
    boolean isElsewhere = false;
    try (Store store = SocketStore.connect(address, token, own, deadline, failures)) {
      for (String key : store.keys(PREFIX, deadline)) {
        Optional<byte[]> said = store.get(key, deadline);
        if (said.isPresent()) {
          String pid = key.substring(PREFIX.length()).replaceFirst("/.*", "");
          Arrival told = told(pid, said.get(), failures);
          if (told.host().equals(ownHost(failures))) {
            processes.add(told.process());
          } else {
            isElsewhere = true;
          }
        }
      }
    }
    if (isElsewhere && processes.isEmpty()) {
      throw failures.make(
          Native.WL_UNSUPPORTED,
          "the job runs on another host, and what its ranks share can be read there alone; run"
              + " this on that host");
    }
    return processes;
  }

  private static Arrival told(String pid, byte[] said, FailureMaker failures) {
    Arrival told = Arrival.of("process " + Texts.printable(pid), List.of(), said, failures);
    if (!told.library().equals(Native.wl_version()) || !told.target().equals(Native.wl_target())) {
      throw failures.make(
          Native.WL_MISMATCH,
          "the job runs windlass "
              + told.library()
              + " for "
              + told.target()
              + "; this one is "
              + Native.wl_version()
              + " for "
              + Native.wl_target()
              + "; take the one that the job runs");
    }
    return told;
  }

  private static String ownHost(FailureMaker failures) {
    try {
      return Arrival.ownHost();
    } catch (IOException e) {
      throw failures.make(
          Native.WL_UNSUPPORTED, "/proc doesn't tell of this host: " + e, e, "", List.of());
    }
  }
}
