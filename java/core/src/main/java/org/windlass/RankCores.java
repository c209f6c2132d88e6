// SPDX-License-Identifier: Apache-2.0
package org.windlass;

import java.util.Arrays;
import java.util.List;
import org.windlass.error.InvalidArgumentException;
import org.windlass.internal.Log;
import org.windlass.internal.Native;
import org.windlass.internal.report.RankLook;

/**
 * Chooses the core on which each rank's thread starts. If a host has at least as many cores as
 * ranks, each rank gets its own core. In a communicator of one rank, that rank gets no core, unless
 * its thread is pinned.
 */
final class RankCores {
  private static final String SETTING = "WINDLASS_PINNED_THREADS";
  private static final int NONE = -1;

  private RankCores() {}

  /**
   * Returns a worker for each rank of this process. Logs a warning if threads are to be pinned, and
   * this host has more ranks than cores.
   *
   * @param setting the value of {@code WINDLASS_PINNED_THREADS}, or null
   * @throws InvalidArgumentException if the setting is neither 0, 1 nor empty
   */
  static List<RankWorker> workers(
      List<Communicator> ranks, CommunicatorOptions options, String setting) {
    boolean stays = pins(options, setting);
    Communicator first = ranks.get(0);
    if (first.size() == 1 && !stays) {
      return List.of(new RankWorker(0, NONE, false));
    }
    int allowed = Native.wl_allowed_cores();
    int cores = options.cores() == 0 ? allowed : Math.min(options.cores(), allowed);
    int[] hosts = RankLook.hosts(first.endpoint());
    if (stays && place(first.rank(), hosts, cores) == NONE) {
      Log.warn(
          "threads of ranks are not pinned: this host has "
              + Arrays.stream(hosts).filter(host -> host == hosts[first.rank()]).count()
              + " ranks, and they may use " + cores
              + (cores == 1 ? " core" : " cores") + "; start fewer ranks, or allow more cores");
    }
    return ranks.stream()
        .map(each -> new RankWorker(each.rank(), place(each.rank(), hosts, cores), stays))
        .toList();
  }

  static String setting() {
    return System.getenv(SETTING);
  }

  static boolean pins(CommunicatorOptions options, String setting) {
    if (setting != null && !setting.matches("[01]?")) {
      throw new InvalidArgumentException(
          SETTING + " is \"" + setting + "\"; give 1, which pins the threads of ranks, or 0");
    }
    return options.pinnedThreads() || "1".equals(setting);
  }

  /** Returns a rank's index among its host's ranks; {@link #NONE} if there are too few cores. */
  private static int place(int rank, int[] hosts, int cores) {
    int before = 0;
    int all = 0;
    for (int other = 0; other < hosts.length; other++) {
      if (hosts[other] == hosts[rank]) {
        before += other < rank ? 1 : 0;
        all++;
      }
    }
    return all <= cores ? before : NONE;
  }
}
