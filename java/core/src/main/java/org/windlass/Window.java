// SPDX-License-Identifier: Apache-2.0
package org.windlass;

import java.lang.ref.Reference;
import java.util.Arrays;
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
import org.windlass.internal.memory.Leaks;
import org.windlass.internal.memory.Memory;

/**
 * A window: memory that every rank of a communicator holds at the same size, so that peers reach
 * it. Tensors and signals are placed in it one after the other; ranks that make the same ones in
 * the same order find them at the same offsets.
 *
 * <p>{@link #put}, {@link #accumulate} and {@link #get} move elements between this rank's memory
 * and a peer's part, and the peer makes no call; {@link Signals} tell it that something has come.
 * These are one rank's operations: ranks need not call the same ones. They count as operations of
 * the communicator all the same: one thread at a time, and a failure record in common. A peer that
 * has left the communicator is an {@link AbortedException} that names it.
 */
public final class Window implements AutoCloseable {
  private static final long ALIGNMENT = 64;

  private final Communicator communicator;
  private final Memory memory;

  /** The {@code wl_window_t*}; valid while the memory is pinned. */
  final long handle;

  /** Guarded by this. */
  private long used;

  /** Takes over a native handle. */
  private Window(Communicator communicator, long handle, Memory memory) {
    this.communicator = communicator;
    this.handle = handle;
    this.memory = memory;
  }

  /** Takes over the native handle of a window in the host's memory. */
  static Window onHost(Communicator communicator, Endpoint endpoint, long handle, long bytes) {
    long address = Native.wl_window_address(handle, endpoint.rank);
    Segment segment = new Segment("Window", endpoint, handle, bytes);
    return new Window(communicator, handle, Memory.of(address, bytes, segment));
  }

  /** The same in the memory of devices. */
  static Window onDevices(Communicator communicator, Endpoint endpoint, long handle, long bytes) {
    long address = Native.wl_window_address(handle, endpoint.rank);
    Segment segment = new Segment("Device window", endpoint, handle, bytes);
    return new Window(communicator, handle, Memory.ofDevice(address, bytes, segment));
  }

  /**
   * Where the part of {@code rank} lies in this process, as long as the window is open. For
   * packages of Windlass.
   *
   * @hidden
   */
  public long address(int rank) {
    return Native.wl_window_address(handle, rank);
  }

  /** The communicator whose ranks hold it. */
  public Communicator communicator() {
    return communicator;
  }

  /** Whether it lies in the memory of devices: {@link Communicator#deviceWindow}. */
  public boolean isOnDevice() {
    return memory.onDevice;
  }

  /** Bytes of each rank's part. */
  public long bytes() {
    return memory.bytes;
  }

  /** Bytes taken by tensors so far, with what alignment costs. */
  public synchronized long used() {
    return used;
  }

  /** Such as {@code window of 4096 bytes, rank 0 of 2}. */
  @Override
  public String toString() {
    return (isOnDevice() ? "device window of " : "window of ") + bytes() + " bytes, " + communicator;
  }

  /**
   * A tensor in the next free bytes, aligned to 64; zeroed unless something wrote there.
   *
   * @throws ResourceException if the window has no room for it
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
   * A tensor at a place of the caller's choice, whatever lies there.
   *
   * @param offset bytes from the start; a multiple of the dtype's size
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
   * {@code count} signals in the next free bytes, as a tensor is placed; {@link Signals#bytes} says
   * how many that takes. Every rank makes them before any rank uses them.
   *
   * @throws ResourceException if the window has no room for them
   * @throws UnsupportedException if it lies in the memory of devices: hosts set and look at signals
   */
  public Signals signals(int count) {
    if (count < 0) {
      throw new InvalidArgumentException("signals: count is " + count + "; it must be 0 or more");
    }
    if (isOnDevice()) {
      throw new UnsupportedException(
          "signals: " + this + ": it lies in the memory of devices, and hosts set and look at"
              + " signals; make them in a window of the host, by Communicator.window");
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

  /** Takes the next free bytes; the offset of the first, or -1 where there is no room. */
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
   * Copies {@code local} to where {@code remote} lies in {@code peer}'s part of this window. When
   * it returns, {@code local} may be changed; the peer sees the elements once it has waited for a
   * {@link Signals#notify} that follows.
   *
   * <p>What lies in a device's memory, on either side, this rank's device moves, and what passes
   * between it and the host goes through pinned memory.
   *
   * @param local of the same dtype and shape as {@code remote}; strided as either may be
   * @param peer a rank, this one included
   * @param remote a tensor of this window: this rank's own names the same place in the peer's part
   * @throws UnsupportedException if {@code local} lies in a device's memory, and the target is not
   *     {@code cuda}; or both sides lie on devices, {@code local} on another one than the rank's,
   *     and one of them is strided. The communicator lives
   * @throws DeadlineExceededException if {@code peer} lives on another host, which has not taken it
   *     in the communicator's deadline; that ends the communicator
   */
  public void put(Tensor local, int peer, DistributedTensor remote) {
    Arguments.oneSided("put", this, local, remote);
    if (local.memory.onDevice) {
      Arguments.requireDevices("put", "local", local);
      move("put", Native::wl_device_put, local, peer, remote);
    } else {
      move("put", Native::wl_put, local, peer, remote);
    }
  }

  /**
   * Adds {@code local} to what lies where {@code remote} is in {@code peer}'s part of this window,
   * element by element. Ranks may add to the same elements at the same time: no add is lost, but
   * their order is open, and with it the rounding of floats. Each add rounds once to the dtype, as
   * a sum of two does in a reduction; integers wrap. Adds are not ordered with {@link #put} and
   * plain stores to the same elements, which signals or a barrier have to part from them. For the
   * rest like {@link #put}.
   *
   * @throws UnsupportedException if the dtype is none of f32, f16, bf16, i32, i16 and i8, which
   *     every target adds atomically; or as {@link #put} does; or both sides lie on devices, and
   *     {@code local} on another one than the rank's
   */
  public void accumulate(Tensor local, int peer, DistributedTensor remote) {
    Arguments.oneSided("accumulate", this, local, remote);
    if (local.memory.onDevice) {
      Arguments.requireDevices("accumulate", "local", local);
      move("accumulate", Native::wl_device_accumulate, local, peer, remote);
    } else {
      move("accumulate", Native::wl_accumulate, local, peer, remote);
    }
  }

  /**
   * Copies to {@code local} what lies where {@code remote} is in {@code peer}'s part of this
   * window; {@link #put} the other way round. When it returns, {@code local} is complete.
   *
   * @throws UnsupportedException as {@link #put} does
   * @throws DeadlineExceededException if {@code peer} lives on another host, which has not given it
   *     in the communicator's deadline; that ends the communicator
   */
  public void get(Tensor local, int peer, DistributedTensor remote) {
    Arguments.oneSided("get", this, local, remote);
    Arguments.writable("get", "local", local);
    if (local.memory.onDevice) {
      Arguments.requireDevices("get", "local", local);
      move("get", Native::wl_device_get, local, peer, remote);
    } else {
      move("get", Native::wl_get, local, peer, remote);
    }
  }

  /** {@code wl_put}, {@code wl_accumulate} or {@code wl_get}, or one of those by a device. */
  @FunctionalInterface
  private interface Move {
    int call(long comm, long window, long local, int peer, long remote, long error);
  }

  private void move(String what, Move move, Tensor local, int peer, DistributedTensor remote) {
    if (mustQueue()) {
      communicator.handOff(() -> move(what, move, local, peer, remote));
      return;
    }
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

  /** Whether a call on this rank takes its turn behind others. */
  boolean mustQueue() {
    return communicator.endpoint.mustQueue(Thread.currentThread());
  }

  /** Begins a call on this rank that uses the window's memory. */
  Endpoint enter(String what) {
    Endpoint own = communicator.endpoint;
    own.begin(Thread.currentThread());
    if (!memory.hold()) {
      own.end();
      throw closed(what);
    }
    return own;
  }

  /**
   * Ends it.
   *
   * @param other what the call has pinned beside the window; null if nothing
   */
  void leave(Endpoint own, int code, Memory other) {
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
   * Ends the use of its tensors on this rank: further calls with them throw {@link
   * ClosedException}. The memory goes when calls in progress are over and every rank has closed its
   * own. Idempotent.
   */
  @Override
  public void close() {
    memory.end();
  }

  private static final class Segment extends Leaks.Resource {
    private final Endpoint endpoint;
    private final long handle;

    Segment(String what, Endpoint endpoint, long handle, long bytes) {
      super(what + " of " + bytes + " bytes of rank " + endpoint.rank);
      this.endpoint = endpoint;
      this.handle = handle;
      endpoint.retain();
    }

    @Override
    protected void free() {
      Native.wl_window_free(handle);
      endpoint.release();
    }
  }
}
