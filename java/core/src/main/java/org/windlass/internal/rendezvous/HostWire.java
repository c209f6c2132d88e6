// SPDX-License-Identifier: Apache-2.0
package org.windlass.internal.rendezvous;

import java.lang.ref.Reference;
import java.nio.ByteBuffer;
import java.util.List;
import java.util.function.ToIntFunction;
import org.windlass.internal.Failures;
import org.windlass.internal.Native;
import org.windlass.internal.NativeMemory;
import org.windlass.internal.Scratch;
import org.windlass.internal.Structs;
import org.windlass.internal.UcxLibrary;

/** Manages the UCX connections between a process of a group and the processes on other hosts. */
final class HostWire {
  private HostWire() {}

  /**
   * Opens this process's end, for its ranks {@code own}, and returns the name by which others
   * connect.
   *
   * @param group a {@code wl_group_t*} to which this process is attached
   */
  static byte[] open(long group, List<Integer> own) {
    UcxLibrary.open();
    ByteBuffer ranks = NativeMemory.copy(own.stream().mapToInt(Integer::intValue).toArray());
    long list = NativeMemory.address(ranks);
    value(call -> Native.wl_group_open_wire(group, list, own.size(), call.error()));
    Reference.reachabilityFence(ranks);
    long bytes =
        value(call -> Native.wl_group_wire_name(group, 0, 0, call.out(), call.error()));
    ByteBuffer room = Structs.allocate((int) bytes);
    long address = NativeMemory.address(room);
    value(call -> Native.wl_group_wire_name(group, address, bytes, call.out(), call.error()));
    byte[] name = new byte[room.capacity()];
    room.get(name);
    return name;
  }

  /** Makes a native call. Returns the value of its out-parameter, or throws its failure. */
  static long value(ToIntFunction<Scratch> call) {
    try (Scratch scratch = Scratch.take()) {
      Failures.check(call.applyAsInt(scratch), scratch);
      return scratch.outValue();
    }
  }

  /** Connects this process to those with these names. {@code silenceNs} is as in {@link Host}. */
  static void connect(long group, List<byte[]> names, long silenceNs) {
    ByteBuffer all = Structs.allocate(names.stream().mapToInt(name -> name.length).sum());
    ByteBuffer lengths = Structs.allocate(names.size() * Long.BYTES);
    for (byte[] name : names) {
      all.put(name);
      lengths.putLong(name.length);
    }
    value(
        call ->
            Native.wl_group_connect(
                group, NativeMemory.address(all), NativeMemory.address(lengths), names.size(),
                silenceNs, call.error()));
    Reference.reachabilityFence(all);
    Reference.reachabilityFence(lengths);
  }
}
