// SPDX-License-Identifier: Apache-2.0
package org.windlass;

import org.windlass.internal.Endpoint;
import org.windlass.internal.Native;
import org.windlass.internal.RankLists;

/**
 * One collective whose parts differ in size, over tensors and lists that have been checked but for
 * the values of the lists, which the native side checks. Nothing is allocated unless it fails,
 * besides a list that is returned.
 */
final class PartCollective {
  private PartCollective() {}

  /** Null offsets: the parts lie side by side. */
  static void allToAll(
      Endpoint own,
      Thread thread,
      Tensor in,
      long[] sendCounts,
      long[] sendOffsets,
      Tensor out,
      long[] receiveCounts,
      long[] receiveOffsets,
      long deadlineNs) {
    RankLists lists = own.lists();
    Collective.begin(own, thread, Native.WL_OP_ALL_TO_ALL_V, in, out);
    int code =
        Native.wl_all_to_all_v(
            own.handle,
            in.address,
            in.numel,
            lists.put(0, sendCounts),
            lists.put(1, sendOffsets),
            out.address,
            out.numel,
            lists.put(2, receiveCounts),
            lists.put(3, receiveOffsets),
            in.dtype.code(),
            deadlineNs,
            own.error);
    Collective.end(own, code, in, out);
  }

  /** The same on a stream. */
  static Operation<Void> enqueueAllToAll(
      Endpoint own,
      Thread thread,
      long stream,
      Tensor in,
      long[] sendCounts,
      long[] sendOffsets,
      Tensor out,
      long[] receiveCounts,
      long[] receiveOffsets,
      long deadlineNs,
      Object owner) {
    RankLists lists = own.lists();
    Collective.begin(own, thread, Native.WL_OP_ALL_TO_ALL_V, in, out);
    int code =
        Native.wl_enqueue_all_to_all_v(
            own.handle,
            stream,
            in.address,
            in.numel,
            lists.put(0, sendCounts),
            lists.put(1, sendOffsets),
            out.address,
            out.numel,
            lists.put(2, receiveCounts),
            lists.put(3, receiveOffsets),
            in.dtype.code(),
            deadlineNs,
            own.scratch.out(),
            own.error);
    return Collective.enqueued(own, code, in, out, owner);
  }

  /** How many elements came from each rank. */
  static long[] allToAllPacked(
      Endpoint own, Thread thread, Tensor in, long[] sendCounts, Tensor out, long deadlineNs) {
    RankLists lists = own.lists();
    long[] received = new long[own.size];
    Collective.begin(own, thread, Native.WL_OP_ALL_TO_ALL_V, in, out);
    int code =
        Native.wl_all_to_all_v_packed(
            own.handle,
            in.address,
            in.numel,
            lists.put(0, sendCounts),
            0,
            out.address,
            out.numel,
            lists.address(1),
            in.dtype.code(),
            deadlineNs,
            own.error);
    if (code == Native.WL_OK) {
      lists.get(1, received);
    }
    Collective.end(own, code, in, out);
    return received;
  }

  static void allGather(
      Endpoint own, Thread thread, Tensor in, Tensor out, long[] counts, long deadlineNs) {
    RankLists lists = own.lists();
    Collective.begin(own, thread, Native.WL_OP_ALL_GATHER_V, in, out);
    int code =
        Native.wl_all_gather_v(
            own.handle,
            in.address,
            in.numel,
            out.address,
            out.numel,
            lists.put(0, counts),
            in.dtype.code(),
            deadlineNs,
            own.error);
    Collective.end(own, code, in, out);
  }

  static Operation<Void> enqueueAllGather(
      Endpoint own,
      Thread thread,
      long stream,
      Tensor in,
      Tensor out,
      long[] counts,
      long deadlineNs,
      Object owner) {
    RankLists lists = own.lists();
    Collective.begin(own, thread, Native.WL_OP_ALL_GATHER_V, in, out);
    int code =
        Native.wl_enqueue_all_gather_v(
            own.handle,
            stream,
            in.address,
            in.numel,
            out.address,
            out.numel,
            lists.put(0, counts),
            in.dtype.code(),
            deadlineNs,
            own.scratch.out(),
            own.error);
    return Collective.enqueued(own, code, in, out, owner);
  }

  static Operation<Void> enqueueReduceScatter(
      Endpoint own,
      Thread thread,
      long stream,
      Tensor in,
      Tensor out,
      long[] counts,
      int op,
      long deadlineNs,
      Object owner) {
    RankLists lists = own.lists();
    Collective.begin(own, thread, Native.WL_OP_REDUCE_SCATTER_V, in, out);
    int code =
        Native.wl_enqueue_reduce_scatter_v(
            own.handle,
            stream,
            in.address,
            in.numel,
            out.address,
            out.numel,
            lists.put(0, counts),
            in.dtype.code(),
            op,
            deadlineNs,
            own.scratch.out(),
            own.error);
    return Collective.enqueued(own, code, in, out, owner);
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
    Collective.begin(own, thread, Native.WL_OP_REDUCE_SCATTER_V, in, out);
    int code =
        Native.wl_reduce_scatter_v(
            own.handle,
            in.address,
            in.numel,
            out.address,
            out.numel,
            lists.put(0, counts),
            in.dtype.code(),
            op,
            deadlineNs,
            own.error);
    Collective.end(own, code, in, out);
  }
}
