// SPDX-License-Identifier: Apache-2.0
package org.windlass;

import java.time.Duration;
import org.windlass.error.InvalidArgumentException;
import org.windlass.internal.Deadline;
import org.windlass.internal.Native;
import org.windlass.internal.rendezvous.Start;

/**
 * Controls how a communicator behaves. Start from {@link #defaults()} and change single options.
 *
 * @param deadline how long an operation may take if its call specifies no deadline
 * @param firstSequence the sequence number of the communicator's first collective. Later ones count
 *     up from it, and messages and reports show the numbers. Numbers wrap, so every value is valid
 * @param cores how many cores the ranks share; 0 means all cores that affinity and cgroup quota
 *     allow
 * @param blocks how many threads, including its own, run a rank's long operations, at most 64; 0
 *     means one for each core of a rank. On a2a3sim and a5sim, the number of emulated cores of a
 *     rank, at most 16; there 0 means one
 * @param adjustThreads whether operations may also adjust the threads of callers. If ranks share
 *     cores, an operation may move its thread among the cores of the thread's affinity mask. It may
 *     also ask the kernel for short time slices; a later wait undoes this. Without this option,
 *     operations adjust only threads that Windlass makes, such as those of {@link LocalGroup#run}
 * @param pinnedThreads whether each thread of {@link LocalGroup#run} stays on one core of its
 *     affinity mask for the group's life. No effect if a host has fewer cores than ranks. Threads
 *     and processes that a body starts, and the thread of its asynchronous calls, inherit this
 *     core. Two groups pin their ranks to the same cores, also in two programs with the same mask
 */
public record CommunicatorOptions(
    Duration deadline,
    int firstSequence,
    int cores,
    int blocks,
    boolean adjustThreads,
    boolean pinnedThreads) {
  private static final CommunicatorOptions DEFAULTS =
      new CommunicatorOptions(Duration.ofSeconds(60), 1, 0, 0, false, false);

  public CommunicatorOptions {
    Deadline.nanos(deadline);
    if (cores < 0) {
      throw new InvalidArgumentException(
          "cores is " + cores + "; it must be 0 (all allowed cores) or more");
    }
    if (blocks < 0 || blocks > Native.WL_MAX_BLOCKS) {
      throw new InvalidArgumentException(
          "blocks is " + blocks + "; it must lie in [0, " + Native.WL_MAX_BLOCKS + "]");
    }
  }

  /**
   * Returns the default options: a deadline of 60 seconds, sequence numbers from 1, all allowed
   * cores, and a matching number of blocks. Callers' threads are not adjusted, and no threads are
   * pinned.
   */
  public static CommunicatorOptions defaults() {
    return DEFAULTS;
  }

  /** Returns these options with another deadline. */
  public CommunicatorOptions withDeadline(Duration deadline) {
    return new CommunicatorOptions(
        deadline, firstSequence, cores, blocks, adjustThreads, pinnedThreads);
  }

  /** Returns these options with another sequence number for the first operation. */
  public CommunicatorOptions withFirstSequence(int firstSequence) {
    return new CommunicatorOptions(
        deadline, firstSequence, cores, blocks, adjustThreads, pinnedThreads);
  }

  /** Returns these options with another number of cores. */
  public CommunicatorOptions withCores(int cores) {
    return new CommunicatorOptions(
        deadline, firstSequence, cores, blocks, adjustThreads, pinnedThreads);
  }

  /** Returns these options with another number of threads or emulated cores per rank. */
  public CommunicatorOptions withBlocks(int blocks) {
    return new CommunicatorOptions(
        deadline, firstSequence, cores, blocks, adjustThreads, pinnedThreads);
  }

  /** Returns these options with another value of {@code adjustThreads}. */
  public CommunicatorOptions withAdjustThreads(boolean adjustThreads) {
    return new CommunicatorOptions(
        deadline, firstSequence, cores, blocks, adjustThreads, pinnedThreads);
  }

  /** Returns these options with another value of {@code pinnedThreads}. */
  public CommunicatorOptions withPinnedThreads(boolean pinnedThreads) {
    return new CommunicatorOptions(
        deadline, firstSequence, cores, blocks, adjustThreads, pinnedThreads);
  }

  Start.Config config() {
    return new Start.Config(firstSequence, cores, blocks, Deadline.nanos(deadline), adjustThreads);
  }
}
