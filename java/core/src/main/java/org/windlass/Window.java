// SPDX-License-Identifier: Apache-2.0
package org.windlass;

import java.lang.ref.Reference;
import java.util.Arrays;
import org.jspecify.annotations.Nullable;
import org.windlass.error.AbortedException;
import org.windlass.error.ClosedException;
import org.windlass.error.DeadlineExceededException;
import org.windlass.error.InvalidArgumentException;
import org.windlass.error.ResourceException;
import org.windlass.error.UnsupportedException;
import org.windlass.internal.Deadline;
import org.windlass.internal.Native;
import org.windlass.internal.Shapes;
import org.windlass.internal.call.Endpoint;
import org.windlass.internal.memory.Memory;

/**
 * A window: memory of the same size on every rank of a communicator, which peers can access.
 * Tensors and signals are placed in it one after another. Ranks that make the same tensors and
 * signals in the same order get the same offsets.
 *
 * <p>{@link #put}, {@link #accumulate} and {@link #get} move elements between this rank's memory
 * and a peer's part, without a call by the peer. {@link Signals} inform the peer of new data. These
 * operations are one-sided: ranks need not call the same operations. The rules of the communicator
 * still apply: one thread at a time, and a failure ends it for all ranks. If the peer has left the
 * communicator, they throw an {@link AbortedException} that names it.
 */
public final class Window implements AutoCloseable {
  private static final long ALIGNMENT = 64;

  private final Communicator communicator;
  private final Memory memory;

  /** The {@code wl_window_t*}; valid while the window's memory is pinned. */
  final long handle;

  /** Number of bytes that are allocated so far. Guarded by this. */
  private long used;

  private Window(Communicator communicator, long handle, Memory memory) {
    this.communicator = communicator;
    this.handle = handle;
    this.memory = memory;
  }

  /** Takes ownership of a native window in the memory of hosts or of devices. */
  static Window of(Communicator communicator, long handle, long bytes, boolean onDevice) {
    Endpoint endpoint = communicator.endpoint;
    long address = Native.wl_window_address(handle, endpoint.rank);
    String what = onDevice ? "Device window" : "Window";
    endpoint.retain();
    Memory memory =
        Memory.of(
            address,
            bytes,
            onDevice,
            what + " of " + bytes + " bytes of rank " + endpoint.rank,
            () -> {
              Native.wl_window_free(handle);
              endpoint.release();
            });
    return new Window(communicator, handle, memory);
  }

  /**
   * Returns the address of {@code rank}'s part in this process, valid while the window is open. For
   * packages of Windlass.
   *
   * @hidden
   */
  public long address(int rank) {
    return Native.wl_window_address(handle, rank);
  }

  /** Returns the communicator whose ranks hold the window. */
  public Communicator communicator() {
    return communicator;
  }

  /** Returns true if the window is in the memory of devices: {@link Communicator#deviceWindow}. */
  public boolean isOnDevice() {
    return memory.onDevice;
  }

  /** Returns the size of each rank's part in bytes. */
  public long bytes() {
    return memory.bytes;
  }

  /** Returns the number of bytes that tensors and signals take so far, including alignment. */
  public synchronized long used() {
    return used;
  }

  /** Returns a text such as {@code window of 4096 bytes, rank 0 of 2}. */
  @Override
  public String toString() {
    return (isOnDevice() ? "device window of " : "window of ") + bytes() + " bytes, " + communicator;
  }

  /**
   * Makes a tensor in the next free bytes, aligned to 64 bytes. Its elements are zero, unless a
   * rank has written to these bytes before.
   *
   * @throws ResourceException if the window has too few free bytes
   */
  public DistributedTensor tensor(DType dtype, long... shape) {
    long[] checked = ShapeChecks.checked("tensor", dtype, shape);
    requireOpen("tensor");
    long offset = take(Shapes.numel(checked) * dtype.bytes());
    if (offset < 0) {
      throw full(
          "tensor: shape " + Arrays.toString(checked) + " of " + dtype + " needs ",
          Shapes.numel(checked) * dtype.bytes());
    }
    return new DistributedTensor(
        this, memory.address + offset, dtype, checked, Shapes.contiguousStrides(checked));
  }

  /**
   * Makes a tensor at a chosen offset, even if other tensors or signals overlap it.
   *
   * @param offset bytes from the start; a multiple of the dtype's size
   * @throws InvalidArgumentException if the tensor does not fit in the window at that offset
   */
  public DistributedTensor tensorAt(long offset, DType dtype, long... shape) {
    long[] checked = ShapeChecks.checked("tensorAt", dtype, shape);
    if (offset < 0 || offset > bytes()) {
      throw new InvalidArgumentException(
          "tensorAt: offset is " + offset + "; it must lie in [0, " + bytes() + "]");
    }
    Tensor.checkFits("tensorAt", memory, offset, dtype, checked);
    requireOpen("tensorAt");
    return new DistributedTensor(
        this, memory.address + offset, dtype, checked, Shapes.contiguousStrides(checked));
  }

  /**
   * Makes {@code count} signals in the next free bytes, which are allocated as for a tensor. {@link
   * Signals#bytes} returns their size. Every rank makes them before any rank uses them.
   *
   * @throws ResourceException if the window has too few free bytes
   * @throws UnsupportedException if the window is in the memory of devices, since hosts set and
   *     read signals
   */
  public Signals signals(int count) {
    if (count < 0) {
      throw new InvalidArgumentException("signals: count is " + count + "; it must be 0 or more");
    }
    if (isOnDevice()) {
      throw new UnsupportedException(
          "signals: " + this + ": it is in the memory of devices, but hosts set and read signals;"
              + " make them in a window of the host (Communicator.window)");
    }
    requireOpen("signals");
    long offset = take(Signals.bytes(count, communicator.size()));
    if (offset < 0) {
      throw full(
          "signals: " + count + " for each of " + communicator.size() + " ranks need ",
          Signals.bytes(count, communicator.size()));
    }
    return new Signals(this, offset, count, Deadline.DEFAULT);
  }

  /** Reserves the next free bytes. Returns their offset in bytes; -1 if there are too few. */
  private synchronized long take(long needed) {
    long offset = (used + ALIGNMENT - 1) & -ALIGNMENT;
    if (offset > bytes() || needed > bytes() - offset) {
      return -1;
    }
    used = offset + needed;
    return offset;
  }

  private synchronized ResourceException full(String what, long needed) {
    long left = Math.max(0, bytes() - ((used + ALIGNMENT - 1) & -ALIGNMENT));
    return new ResourceException(
        what + needed + " bytes; the window has " + left + " of " + bytes() + " left");
  }

  private void requireOpen(String what) {
    if (memory.ended()) {
      throw closed(what);
    }
  }

  private ClosedException closed(String what) {
    return new ClosedException(what + ": the window of " + bytes() + " bytes was closed");
  }

  /**
   * Copies {@code local} to the location of {@code remote} in {@code peer}'s part of this window.
   * When the call returns, {@code local} may be changed. The peer sees the elements once it has
   * awaited a signal that this rank sets afterwards ({@link Signals#notify}).
   *
   * <p>If either tensor is in device memory, this rank's device moves the data. Data between a
   * device and the host passes through pinned memory.
   *
   * @param local a tensor of the same dtype and shape as {@code remote}; either may be strided
   * @param peer any rank, including this one
   * @param remote a tensor of this window. Its offset selects the location in the peer's part
   * @throws UnsupportedException if {@code local} is in a device's memory and the target is not
   *     {@code cuda}. It is also thrown if both tensors are on devices, one of them is strided, and
   *     {@code local} is on another device than the rank's. The communicator stays alive
   * @throws DeadlineExceededException if {@code peer} is on another host and has not received the
   *     data within the communicator's deadline; this ends the communicator
   */
  public void put(Tensor local, int peer, DistributedTensor remote) {
    Arguments.oneSided("put", this, local, remote);
    move("put", Native::wl_put, Native::wl_device_put, local, peer, remote);
  }

  /**
   * Adds {@code local}, element by element, to the elements at the location of {@code remote} in
   * {@code peer}'s part of this window. Several ranks may add to the same elements at the same
   * time. No addition is lost, but the order of additions is undefined, so the rounding of floats
   * may vary. Each addition rounds once to the dtype, like the sum of two values in a reduction.
   * Integers wrap. Additions are not ordered with {@link #put} or plain stores to the same
   * elements; separate them by signals or a barrier. Otherwise the call works like {@link #put}.
   *
   * @throws UnsupportedException if the dtype is not one of f32, f16, bf16, i32, i16 and i8, which
   *     every target adds atomically. It is also thrown in the cases of {@link #put}, or if both
   *     tensors are on devices and {@code local} is on another device than the rank's
   */
  public void accumulate(Tensor local, int peer, DistributedTensor remote) {
    Arguments.oneSided("accumulate", this, local, remote);
    move("accumulate", Native::wl_accumulate, Native::wl_device_accumulate, local, peer, remote);
  }

  /**
   * Copies to {@code local} the elements at the location of {@code remote} in {@code peer}'s part
   * of this window. It is {@link #put} in the other direction. When it returns, {@code local} is
   * complete.
   *
   * @throws UnsupportedException in the cases of {@link #put}
   * @throws DeadlineExceededException if {@code peer} is on another host and has not sent the data
   *     within the communicator's deadline; this ends the communicator
   */
  public void get(Tensor local, int peer, DistributedTensor remote) {
    Arguments.oneSided("get", this, local, remote);
    Arguments.writable("get", "local", local);
    move("get", Native::wl_get, Native::wl_device_get, local, peer, remote);
  }

  /** A native call that moves elements: {@code wl_put}, {@code wl_accumulate} or {@code wl_get}. */
  @FunctionalInterface
  private interface Move {
    int call(long comm, long window, long local, int peer, long remote, long error);
  }

  private void move(
      String what, Move host, Move device, Tensor local, int peer, DistributedTensor remote) {
    if (local.memory.onDevice) {
      Arguments.requireDevices(what, "local", local);
    }
    if (mustQueue()) {
      communicator.handOff(() -> move(what, host, device, local, peer, remote));
      return;
    }
    Move move = local.memory.onDevice ? device : host;
    Endpoint own = enter(what);
    Memory other = local.memory == memory ? null : local.memory;
    if (other != null && !other.hold()) {
      leave(own, Native.WL_OK, null);
      throw local.closed(what, "local");
    }
    long from = Elements.describe(own.scratch, 0, local);
    long to = Elements.describe(own.scratch, 1, remote);
    leave(own, move.call(own.handle, handle, from, peer, to, own.error), other);
    Reference.reachabilityFence(local);
  }

  boolean mustQueue() {
    return communicator.endpoint.mustQueue(Thread.currentThread());
  }

  /** Begins a call of this rank, and pins the window's memory. {@link #leave} ends it. */
  Endpoint enter(String what) {
    Endpoint own = communicator.endpoint;
    own.begin(Thread.currentThread());
    if (!memory.hold()) {
      own.end();
      throw closed(what);
    }
    return own;
  }

  /** Ends a call, unpins the window and {@code other}, and throws unless {@code code} is Ok. */
  void leave(Endpoint own, int code, @Nullable Memory other) {
    if (code != Native.WL_OK) {
      throw own.settle(code, memory, other);
    }
    own.end();
    memory.unpin();
    if (other != null) {
      other.unpin();
    }
    Reference.reachabilityFence(this);
  }

  Memory memory() {
    return memory;
  }

  /**
   * Ends the use of the window's tensors on this rank. Later calls with them throw {@link
   * ClosedException}. The memory is freed once calls in progress are over and every rank has closed
   * its window. Idempotent.
   */
  @Override
  public void close() {
    memory.end();
  }
}
