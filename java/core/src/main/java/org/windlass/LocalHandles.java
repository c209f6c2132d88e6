// SPDX-License-Identifier: Apache-2.0
package org.windlass;

import org.windlass.error.InvalidArgumentException;
import org.windlass.internal.Deadline;
import org.windlass.internal.Failures;
import org.windlass.internal.Native;
import org.windlass.internal.Natives;
import org.windlass.internal.Scratch;
import org.windlass.internal.Structs;

final class LocalHandles {
  private LocalHandles() {}

  static long[] create(int ranks, CommunicatorOptions options) {
    long deadlineNs = Deadline.nanos(options.deadline());
    if (ranks < 1 || ranks > Native.WL_MAX_RANKS) {
      throw new InvalidArgumentException(
          "local: ranks is " + ranks + "; it must lie in [1, " + Native.WL_MAX_RANKS + "]");
    }
    Natives.require();
    try (Scratch scratch = Scratch.take()) {
      long config = scratch.config(Structs.GroupConfig.SIZE);
      scratch.configInt(Structs.GroupConfig.RANKS, ranks);
      scratch.configInt(Structs.GroupConfig.FIRST_SEQUENCE, options.firstSequence());
      scratch.configInt(Structs.GroupConfig.CORES, options.cores());
      scratch.configInt(Structs.GroupConfig.BLOCKS, options.blocks());
      scratch.configLong(Structs.GroupConfig.DEADLINE_NS, deadlineNs);
      scratch.configInt(Structs.GroupConfig.ADJUST_THREADS, options.adjustThreads() ? 1 : 0);
      Failures.check(Native.wl_group_create(config, scratch.out(), scratch.error()), scratch);
      long group = scratch.outValue();
      long[] handles = new long[ranks];
      try {
        for (int rank = 0; rank < ranks; rank++) {
          Failures.check(Native.wl_group_join(group, rank, scratch.out(), scratch.error()), scratch);
          handles[rank] = scratch.outValue();
        }
        return handles;
      } catch (RuntimeException e) {
        for (long handle : handles) {
          if (handle != 0) {
            Native.wl_comm_free(handle);
          }
        }
        throw e;
      } finally {
        Native.wl_group_release(group);
      }
    }
  }
}
