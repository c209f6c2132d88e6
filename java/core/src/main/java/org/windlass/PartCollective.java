// SPDX-License-Identifier: Apache-2.0
package org.windlass;

import org.windlass.internal.Native;
import org.windlass.internal.call.Endpoint;
import org.windlass.internal.call.RankLists;

/**
 * Runs one collective whose parts have different sizes. Its tensors and lists have been checked,
 * except for the values in the lists, which the native side checks. Unless a call fails, nothing is
 * allocated except a returned list.
 *
 * <p>{@link #allGather} and {@link #reduceScatter} begin a call and describe it. The caller then
 * calls {@link #run} or {@link Collective#enqueue}.
 */
final class PartCollective {
  private PartCollective() {}

  static void allGather(
      Endpoint own, Thread thread, Tensor in, Tensor out, long[] counts, long deadlineNs) {
    RankLists lists = own.lists();
    Collective.begin(own, thread, Native.WL_OP_ALL_GATHER_V, in, out, deadlineNs)
        .outParts(lists.put(0, counts), 0);
  }

  static void reduceScatter(
      Endpoint own,
      Thread thread,
      Tensor in,
      Tensor out,
      long[] counts,
      int op,
      long deadlineNs) {
    RankLists lists = own.lists();
    Collective.begin(own, thread, Native.WL_OP_REDUCE_SCATTER_V, in, out, deadlineNs)
        .inParts(lists.put(0, counts), 0)
        .op(op);
  }

  static void run(Endpoint own, Tensor in, Tensor out) {
    Collective.end(own, own.submit(), in, out);
  }

  /**
   * Runs an all-to-all whose received blocks lie one after the other in {@code out}. Returns the
   * number of elements received from each rank.
   */
  static long[] allToAllPacked(
      Endpoint own, Thread thread, Tensor in, long[] sendCounts, Tensor out, long deadlineNs) {
    RankLists lists = own.lists();
    long[] received = new long[own.size];
    Collective.begin(own, thread, Native.WL_OP_ALL_TO_ALL_V, in, out, deadlineNs)
        .inParts(lists.put(0, sendCounts), 0)
        .received(lists.address(1));
    int code = own.submit();
    if (code == Native.WL_OK) {
      lists.get(1, received);
    }
    Collective.end(own, code, in, out);
    return received;
  }
}
