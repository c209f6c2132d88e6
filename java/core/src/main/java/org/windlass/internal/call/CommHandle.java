// SPDX-License-Identifier: Apache-2.0
package org.windlass.internal.call;

import java.lang.ref.Reference;
import java.nio.ByteBuffer;
import java.util.List;
import org.jspecify.annotations.Nullable;
import org.windlass.error.WindlassException;
import org.windlass.internal.Failures;
import org.windlass.internal.Native;
import org.windlass.internal.NativeMemory;
import org.windlass.internal.Scratch;
import org.windlass.internal.memory.Lifetime;

/**
 * Owns one rank's {@code wl_comm_t}. It is freed after the communicator has ended, once no window,
 * transfer or failed call needs it.
 */
final class CommHandle extends Lifetime {
  private static final byte[] NO_MEMORY =
      NativeMemory.utf8("it has no memory left, not even to say more");

  private final long comm;

  CommHandle(long comm) {
    this.comm = comm;
  }

  boolean failed() {
    return Native.wl_comm_status(comm, 0) != Native.WL_OK;
  }

  @Nullable WindlassException failure() {
    try (Scratch scratch = Scratch.take()) {
      int code = Native.wl_comm_status(comm, scratch.error());
      return code == Native.WL_OK ? null : Failures.of(code, scratch.errorBuffer());
    }
  }

  /** Returns true if no rank can still access memory that a failed operation used. */
  boolean isQuiescent() {
    return Native.wl_comm_quiescent(comm) == 1;
  }

  /** Returns true if no peer can still access the memory of a call that returned {@code code}. */
  boolean isQuietAfter(int code) {
    return code == Native.WL_OK || (code != Native.WL_CLOSED && !failed()) || isQuiescent();
  }

  void abort(String reason) {
    if (pin()) {
      try {
        Native.wl_comm_abort(comm, text(reason), 0);
      } finally {
        unpin();
      }
    }
  }

  void fail(int code, List<Integer> faultyRanks, String message) {
    if (pin()) {
      try {
        int[] ranks = faultyRanks.stream().mapToInt(Integer::intValue).toArray();
        ByteBuffer list = NativeMemory.copy(ranks);
        Native.wl_comm_fail(comm, code, NativeMemory.address(list), ranks.length, text(message), 0);
        Reference.reachabilityFence(list);
      } finally {
        unpin();
      }
    }
  }

  private static byte[] text(String reason) {
    try {
      return NativeMemory.utf8(reason.replace('\0', ' '));
    } catch (OutOfMemoryError e) {
      return NO_MEMORY;
    }
  }

  /** Leaves the communicator. Returns the failure that the native close reports, or null. */
  @Nullable RuntimeException leave() {
    try (Scratch scratch = Scratch.take()) {
      int code = Native.wl_comm_close(comm, scratch.error());
      return code == Native.WL_OK ? null : Failures.of(code, scratch.errorBuffer());
    } catch (OutOfMemoryError e) {
      Native.wl_comm_close(comm, 0); // peers learn of it whether there is room to say more or not
      throw e;
    }
  }

  @Override
  protected void release() {
    Native.wl_comm_free(comm);
  }
}
