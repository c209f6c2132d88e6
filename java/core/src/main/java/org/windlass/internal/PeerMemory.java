// SPDX-License-Identifier: Apache-2.0
package org.windlass.internal;

import java.nio.ByteBuffer;

/** Reports how ranks access memory of other processes that is not in a window. */
public final class PeerMemory {
  /** Value of {@code comm} for a process without a communicator. */
  public static final long NO_COMM = 0;

  private PeerMemory() {}

  /**
   * Returns how ranks access memory of other processes outside windows, and why: {@code
   * process_vm_readv: ...}, {@code stage: ...} and so on.
   *
   * @param comm a {@code wl_comm_t*}, or {@link #NO_COMM}
   * @throws org.windlass.error.InvalidArgumentException if {@code WINDLASS_PEER_MEMORY} has an
   *     unknown value
   */
  public static String of(long comm) {
    return of((memory, error) -> Native.wl_comm_peer_memory(comm, memory, error));
  }

  /** Returns the answer that {@code question} writes, as text. */
  public static String of(Natives.Call question) {
    ByteBuffer memory = Structs.allocate(Structs.PeerMemory.SIZE);
    memory.putInt(0, Structs.PeerMemory.SIZE);
    Natives.call((out, error) -> question.make(NativeMemory.address(memory), error));
    int room = Structs.PeerMemory.SIZE - Structs.PeerMemory.WHY;
    return name(memory.getInt(Structs.PeerMemory.FORM)) + ": "
        + Structs.text(memory, Structs.PeerMemory.WHY, room);
  }

  private static String name(int form) {
    return switch (form) {
      case Native.WL_PEER_MEMORY_SHARED -> "shared";
      case Native.WL_PEER_MEMORY_READV -> "process_vm_readv";
      case Native.WL_PEER_MEMORY_STAGE -> "stage";
      case Native.WL_PEER_MEMORY_REFUSED -> "refused";
      default -> "not yet";
    };
  }
}
