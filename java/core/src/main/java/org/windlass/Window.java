// SPDX-License-Identifier: Apache-2.0
package org.windlass;

import java.util.Arrays;
import org.windlass.internal.Endpoint;
import org.windlass.internal.Leaks;
import org.windlass.internal.Memory;
import org.windlass.internal.Native;

/**
 * Memory that every rank of a communicator holds at the same size, so that peers reach it. Tensors
 * are placed in it one after the other; ranks that make the same tensors in the same order find
 * them at the same offsets.
 */
public final class Window implements AutoCloseable {
  private static final long ALIGNMENT = 64;

  private final Communicator communicator;
  private final Memory memory;

  /** Guarded by this. */
  private long used;

  /** Takes over a native handle. */
  Window(Communicator communicator, Endpoint endpoint, long handle, long bytes) {
    this.communicator = communicator;
    long address = Native.wl_window_address(handle, endpoint.rank);
    String what = "Window of " + bytes + " bytes of rank " + endpoint.rank;
    this.memory = Memory.of(address, bytes, new Segment(what, endpoint, handle));
  }

  public Communicator communicator() {
    return communicator;
  }

  /** Bytes of each rank's part. */
  public long bytes() {
    return memory.bytes;
  }

  /** Bytes taken by tensors so far, with what alignment costs. */
  public synchronized long used() {
    return used;
  }

  /**
   * A tensor in the next free bytes, aligned to 64; zeroed unless something wrote there.
   *
   * @throws ResourceException if the window has no room for it
   */
  public DistributedTensor tensor(DType dtype, long... shape) {
    long[] checked = Shapes.checked("tensor", dtype, shape);
    if (memory.ended()) {
      throw new ClosedException("tensor: the window of " + bytes() + " bytes was closed");
    }
    long needed = Shapes.numel(checked) * dtype.bytes();
    long offset;
    synchronized (this) {
      offset = (used + ALIGNMENT - 1) & -ALIGNMENT;
      if (offset > bytes() || needed > bytes() - offset) {
        throw new ResourceException(
            "tensor: shape "
                + Arrays.toString(checked)
                + " of "
                + dtype
                + " needs "
                + needed
                + " bytes; the window has "
                + Math.max(0, bytes() - offset)
                + " of "
                + bytes()
                + " left");
      }
      used = offset + needed;
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
    long[] checked = Shapes.checked("tensorAt", dtype, shape);
    if (offset < 0 || offset > bytes()) {
      throw new InvalidArgumentException(
          "tensorAt: offset is " + offset + "; it must lie in [0, " + bytes() + "]");
    }
    Tensor.checkFits("tensorAt", memory, offset, dtype, checked);
    if (memory.ended()) {
      throw new ClosedException("tensorAt: the window of " + bytes() + " bytes was closed");
    }
    return new DistributedTensor(
        this, memory.address + offset, dtype, checked, Shapes.contiguousStrides(checked));
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

    Segment(String what, Endpoint endpoint, long handle) {
      super(what);
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
