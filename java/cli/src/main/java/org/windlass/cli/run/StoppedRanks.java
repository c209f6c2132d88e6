// SPDX-License-Identifier: Apache-2.0
package org.windlass.cli.run;

import java.time.Duration;
import java.util.List;
import java.util.Optional;
import java.util.stream.Collectors;

/**
 * Reports and then ends ranks that are suspended while all other ranks have ended. It reports them
 * from time to time and, after a deadline, ends them. Call it every {@link
 * RankProcesses#LOOK_AT_STOPPED}. It counts the consecutive calls with the same ranks. Time in
 * which this process is suspended therefore does not count.
 */
public final class StoppedRanks implements Runnable {
  /**
   * Number of calls before the first report. {@link #SILENCE} is the number of calls between two
   * reports.
   */
  static final int PATIENCE = 10;

  static final int SILENCE = 120;

  private final RankProcesses processes;
  private final Optional<Duration> deadline;
  private List<RankProcesses.Rank> seen = List.of();
  private int looks;

  public StoppedRanks(RankProcesses processes, Optional<Duration> deadline) {
    this.processes = processes;
    this.deadline = deadline;
  }

  @Override
  public void run() {
    List<RankProcesses.Rank> now = processes.stopped();
    looks = now.isEmpty() || !now.equals(seen) ? 0 : looks + 1;
    seen = now;
    if (now.isEmpty()) {
      return;
    }
    Duration stood = RankProcesses.LOOK_AT_STOPPED.multipliedBy(looks);
    if (deadline.filter(limit -> stood.compareTo(limit) >= 0).isPresent()) {
      say("they made no progress for " + stood.toMillis() / 1e3 + " s and are ended");
      processes.end();
    } else if (looks % SILENCE == PATIENCE) {
      say("kill -CONT resumes a rank, kill -KILL ends it");
    }
  }

  private void say(String then) {
    processes
        .output()
        .say(
            "windlass run: only suspended ranks are left: "
                + seen.stream()
                    .map(rank -> rank.number() + " (process " + rank.pid() + ")")
                    .collect(Collectors.joining(", "))
                + "; "
                + then);
  }
}
