// SPDX-License-Identifier: Apache-2.0
package org.windlass;

import java.lang.ref.Reference;
import org.windlass.internal.Endpoint;
import org.windlass.internal.Memory;
import org.windlass.internal.Native;

/**
 * One collective over tensors whose arguments have been checked: pins, one native call, and what
 * follows it. Nothing is allocated unless it fails.
 */
final class Collective {
  private Collective() {}

  /**
   * Runs {@code operation}, one of the C ABI's {@code wl_operation}.
   *
   * @param in null where this rank reads nothing
   * @param out null where this rank writes nothing; not both
   * @param count as the native function counts
   */
  static void run(
      Endpoint own,
      Thread thread,
      int operation,
      Tensor in,
      Tensor out,
      long count,
      int op,
      int root,
      int algorithm,
      long deadlineNs) {
    begin(own, thread, operation, in, out);
    int code =
        call(
            own,
            operation,
            in == null ? 0 : in.address,
            out == null ? 0 : out.address,
            count,
            (in != null ? in : out).dtype.code(),
            op,
            root,
            algorithm,
            deadlineNs);
    end(own, code, in, out);
  }

  /** Makes {@code thread} the one caller and pins the tensors, either of which may be null. */
  static void begin(Endpoint own, Thread thread, int operation, Tensor in, Tensor out) {
    own.begin(thread);
    Memory source = (in != null ? in : out).memory;
    if (!hold(source, (out != null ? out : in).memory)) {
      own.end();
      String what = Native.wl_operation_name(operation);
      boolean isIn = out == null || (in != null && in != out && !source.usable());
      throw isIn ? in.closed(what, "in") : out.closed(what, "out");
    }
  }

  /** Ends what {@link #begin} began, by an exception unless {@code code} is Ok. */
  static void end(Endpoint own, int code, Tensor in, Tensor out) {
    Memory source = (in != null ? in : out).memory;
    Memory target = (out != null ? out : in).memory;
    if (code != Native.WL_OK) {
      throw own.settle(code, source, target);
    }
    own.end();
    source.unpin();
    if (target != source) {
      target.unpin();
    }
    Reference.reachabilityFence(in);
    Reference.reachabilityFence(out);
  }

  private static int call(
      Endpoint own,
      int operation,
      long in,
      long out,
      long count,
      int dtype,
      int op,
      int root,
      int algorithm,
      long deadlineNs) {
    long comm = own.handle;
    long error = own.error;
    return switch (operation) {
      case Native.WL_OP_ALL_TO_ALL ->
          Native.wl_all_to_all(comm, in, out, count, dtype, algorithm, deadlineNs, error);
      case Native.WL_OP_BROADCAST ->
          Native.wl_broadcast(comm, in, out, count, dtype, root, algorithm, deadlineNs, error);
      case Native.WL_OP_ALL_GATHER ->
          Native.wl_all_gather(comm, in, out, count, dtype, deadlineNs, error);
      case Native.WL_OP_REDUCE_SCATTER ->
          Native.wl_reduce_scatter(comm, in, out, count, dtype, op, deadlineNs, error);
      case Native.WL_OP_ALL_REDUCE ->
          Native.wl_all_reduce(comm, in, out, count, dtype, op, algorithm, deadlineNs, error);
      case Native.WL_OP_SCATTER ->
          Native.wl_scatter(comm, in, out, count, dtype, root, deadlineNs, error);
      case Native.WL_OP_GATHER ->
          Native.wl_gather(comm, in, out, count, dtype, root, deadlineNs, error);
      case Native.WL_OP_REDUCE ->
          Native.wl_reduce(comm, in, out, count, dtype, op, root, deadlineNs, error);
      default -> throw new InternalException("no collective " + operation);
    };
  }

  /** Pins both, or neither. */
  private static boolean hold(Memory a, Memory b) {
    if (!a.hold()) {
      return false;
    }
    if (b != a && !b.hold()) {
      a.unpin();
      return false;
    }
    return true;
  }
}
