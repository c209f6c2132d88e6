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
 *     means one for each core that a rank has. On a2a3sim and a5sim the emulated cores of a rank, of
 *     which there are at most 16, and one where this is 0
 * @param adjustThreads whether operations may adjust the threads that call them where ranks share
 *     cores: move one among the cores of its affinity mask, and ask the kernel for short time
 *     slices, which a later wait gives back. Threads that Windlass makes, those of {@link
 *     LocalGroup#run} among them, are adjusted anyway; a caller's are left as they are unless this
 *     is true
 * @param pinnedThreads whether the threads of {@link LocalGroup#run} stay on one core each, of those
 *     that their masks allow, for the group's life; where cores are fewer than ranks they are left
 *     as they are. Threads that Java makes for a body inherit that core, and so does the one of its
 *     asynchronous calls; another group's get the same cores
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
    return new Start.Config(
        firstSequence,
        cores,
        blocks,
        Deadline.nanos(deadline),
        adjustThreads);
  }
}
