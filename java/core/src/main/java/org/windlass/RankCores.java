// SPDX-License-Identifier: Apache-2.0
package org.windlass;

import java.util.List;
import org.windlass.error.InvalidArgumentException;
import org.windlass.internal.Native;
import org.windlass.internal.report.RankLook;

/**
 * Where threads of ranks are placed as they start: where every rank of a host may have a core, each
 * on one of its own. A rank alone begins where the kernel has it, unless it is to stay.
 */
final class RankCores {
  private static final String SETTING = "WINDLASS_PINNED_THREADS";
  private static final int NONE = -1;

  private RankCores() {}

  /**
   * A worker for each rank of a process.
   *
   * @param setting that of the environment, or null
   * @throws InvalidArgumentException if that can't be read
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
    return ranks.stream()
        .map(each -> new RankWorker(each.rank(), place(each.rank(), hosts, cores), stays))
        .toList();
  }

  static String setting() {
    return System.getenv(SETTING);
  }

  /** Whether either says so; an empty setting is none. */
  static boolean pins(CommunicatorOptions options, String setting) {
    if (setting != null && !setting.matches("[01]?")) {
      throw new InvalidArgumentException(
          SETTING + " is \"" + setting + "\"; give 1, which pins the threads of ranks, or 0");
    }
    return options.pinnedThreads() || "1".equals(setting);
  }

  /** The number that a rank has among those of its host; {@link #NONE} where cores are too few. */
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
