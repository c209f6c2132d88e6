// SPDX-License-Identifier: Apache-2.0
package org.windlass;

import java.lang.ref.Reference;
import java.util.Objects;
import org.jspecify.annotations.Nullable;
import org.windlass.internal.Native;
import org.windlass.internal.call.CallStruct;
import org.windlass.internal.call.Endpoint;
import org.windlass.internal.memory.Memory;

/**
 * Runs one collective over checked tensors. {@link #begin} pins the tensors and describes them. The
 * caller describes the other arguments and submits the call. Then it calls {@link #end} or {@link
 * #enqueue}. Unless a call fails, nothing is allocated.
 */
final class Collective {
  private Collective() {}

  /**
   * Enqueues the operation that the endpoint's call describes on a stream. The tensors stay pinned
   * until the operation is over. If a CUDA graph has captured it, they stay pinned as long as the
   * communicator exists.
   *
   * @param in null if this rank reads nothing
   * @param out null if this rank writes nothing
   * @param owner kept reachable until the operation is over
   */
  static Operation<Void> enqueue(
      Endpoint own, long stream, @Nullable Tensor in, @Nullable Tensor out, Object owner) {
    own.call.on(stream, own.scratch.out());
    int code = own.submit();
    boolean hasNone = in == null && out == null;
    Memory source = hasNone ? null : either(in, out).memory;
    Memory target = hasNone ? null : either(out, in).memory;
    if (code != Native.WL_OK) {
      throw own.settle(code, source, target);
    }
    long ticket = own.scratch.outValue();
    own.end();
    return new Operation<>(own.follow(ticket, source, target, new Object[] {in, out, owner}));
  }

  /**
   * Begins a call of {@code thread}; while it lasts, no other thread can begin a call. Pins the
   * tensors, and describes them in the endpoint's call. {@code in} or {@code out} is null if this
   * rank reads or writes nothing.
   */
  static CallStruct begin(
      Endpoint own,
      Thread thread,
      int operation,
      @Nullable Tensor in,
      @Nullable Tensor out,
      long deadlineNs) {
    own.begin(thread);
    Tensor any = either(in, out);
    Memory source = any.memory;
    if (!hold(source, either(out, in).memory)) {
      own.end();
      String what = Arguments.call(operation);
      if (out != null && (in == null || in == out || source.usable())) {
        throw out.closed(what, "out");
      }
      throw any.closed(what, "in");
    }
    return own.call
        .of(operation, any.dtype.code(), deadlineNs)
        .in(in == null ? 0 : in.address, in == null ? 0 : in.numel)
        .out(out == null ? 0 : out.address, out == null ? 0 : out.numel);
  }

  /** Ends the call that {@link #begin} began. Throws unless {@code code} is {@code WL_OK}. */
  static void end(Endpoint own, int code, @Nullable Tensor in, @Nullable Tensor out) {
    Memory source = either(in, out).memory;
    Memory target = either(out, in).memory;
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

  private static Tensor either(@Nullable Tensor first, @Nullable Tensor second) {
    return first != null ? first : Objects.requireNonNull(second);
  }

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
