// SPDX-License-Identifier: Apache-2.0
package org.windlass;

import java.time.Duration;
import org.windlass.error.InvalidArgumentException;
import org.windlass.internal.Deadline;
import org.windlass.internal.Native;
import org.windlass.internal.rendezvous.Start;

/**
 * The choices of how a communicator behaves. Start from {@link #defaults()} and change what
 * differs.
 *
 * @param deadline how long an operation may take when its call names no deadline
 * @param firstSequence the sequence number of the first operation; it wraps, so every value is as
 *     good
 * @param cores how many cores the ranks share; 0 means what affinity and cgroup quota allow
 * @param blocks how many threads a rank's long operations run on, its own included, at most 64; 0
 *     means one for each core that a rank has. On a2a3sim and a5sim the emulated cores of a rank,
 *     of which there are at most 16, and one where this is 0
 * @param adjustThreads whether operations may also adjust the threads of callers. If ranks share
 *     cores, an operation may move its thread among the cores of the thread's affinity mask. It may
 *     also ask the kernel for short time slices, which a later wait gives back. Without this option
 *     it does so only to threads that Windlass makes, such as those of {@link LocalGroup#run}
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

  /** Checks the components. */
  public CommunicatorOptions {
    Deadline.nanos(deadline);
    if (cores < 0) {
      throw new InvalidArgumentException(
          "cores is " + cores + "; it must be 0 (as allowed) or more");
    }
    if (blocks < 0 || blocks > Native.WL_MAX_BLOCKS) {
      throw new InvalidArgumentException(
          "blocks is " + blocks + "; it must lie in [0, " + Native.WL_MAX_BLOCKS + "]");
    }
  }

  /**
   * A deadline of 60 seconds, sequences from 1, as many cores as allowed, blocks as fit them,
   * callers' threads left as they are, none pinned.
   */
  public static CommunicatorOptions defaults() {
    return DEFAULTS;
  }

  /** These options with another deadline. */
  public CommunicatorOptions withDeadline(Duration deadline) {
    return new CommunicatorOptions(
        deadline, firstSequence, cores, blocks, adjustThreads, pinnedThreads);
  }

  /** These options with another first sequence number. */
  public CommunicatorOptions withFirstSequence(int firstSequence) {
    return new CommunicatorOptions(
        deadline, firstSequence, cores, blocks, adjustThreads, pinnedThreads);
  }

  /** These options with another number of cores. */
  public CommunicatorOptions withCores(int cores) {
    return new CommunicatorOptions(
        deadline, firstSequence, cores, blocks, adjustThreads, pinnedThreads);
  }

  /** These options with another number of threads a rank. */
  public CommunicatorOptions withBlocks(int blocks) {
    return new CommunicatorOptions(
        deadline, firstSequence, cores, blocks, adjustThreads, pinnedThreads);
  }

  /** These options with another say over callers' threads. */
  public CommunicatorOptions withAdjustThreads(boolean adjustThreads) {
    return new CommunicatorOptions(
        deadline, firstSequence, cores, blocks, adjustThreads, pinnedThreads);
  }

  /** These options with another say over where the threads of ranks stay. */
  public CommunicatorOptions withPinnedThreads(boolean pinnedThreads) {
    return new CommunicatorOptions(
        deadline, firstSequence, cores, blocks, adjustThreads, pinnedThreads);
  }

  /** What ranks that start compare. */
  Start.Config config() {
    return new Start.Config(firstSequence, cores, blocks, Deadline.nanos(deadline), adjustThreads);
  }
}
