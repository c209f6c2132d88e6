// SPDX-License-Identifier: Apache-2.0
package org.windlass;

import org.windlass.error.ClosedException;
import org.windlass.error.ResourceException;
import org.windlass.error.WindlassException;
import org.windlass.internal.Native;
import org.windlass.internal.Natives;
import org.windlass.internal.Shapes;
import org.windlass.internal.call.Endpoint;
import org.windlass.internal.memory.Leaks;
import org.windlass.internal.memory.Lifetime;
import org.windlass.internal.memory.Memory;

/**
 * A memory pool from which a rank allocates tensors of any size, in any order, without calls by the
 * other ranks. The processes of all ranks on its host map the memory. If all ranks are on one host,
 * operations of the communicator need no extra copy of such a tensor. This holds for collectives,
 * transfers and links, as with a {@link Window}. If ranks are on several hosts, such a tensor is
 * like one of {@link Tensor#allocate}.
 *
 * <pre>{@code
 * try (var pool = comm.memoryPool(64L << 30)) {          // all ranks together
 *   var gradient = pool.allocate(DType.BF16, rows, 4096); // each what it needs
 *   comm.allReduce(gradient, ReduceOp.AVG);
 *   gradient.close();                                    // memory goes back to the system
 * }
 * }</pre>
 *
 * <p>A pool takes memory as tensors need it, in pages of 4 KiB. Addresses of tensors may differ
 * between ranks, so calls such as {@link Window#put} accept only a tensor of a window as the tensor
 * on the peer. All methods are legal from any thread at any time.
 */
public final class MemoryPool implements AutoCloseable {
  private final Communicator communicator;
  private final Part part;
  private final Leaks.Resource drop;
  private final long bytes;

  MemoryPool(Communicator communicator, Endpoint endpoint, long handle, long bytes) {
    this.communicator = communicator;
    this.bytes = bytes;
    this.part = new Part(endpoint, handle);
    String what = "Memory pool of " + bytes + " bytes of rank " + endpoint.rank;
    this.drop = Leaks.watch(this, what, part::end);
  }

  /** Returns the communicator whose ranks hold the pool. */
  public Communicator communicator() {
    return communicator;
  }

  /** Returns the size of each rank's part in bytes, without the rounding to whole pages. */
  public long bytes() {
    return bytes;
  }

  /** Returns a text such as {@code memory pool of 4096 bytes, rank 0 of 2}. */
  @Override
  public String toString() {
    return "memory pool of " + bytes + " bytes, " + communicator;
  }

  /** Returns the bytes that this rank's open tensors take, each rounded up to a multiple of 64. */
  public long used() {
    if (!part.pin()) {
      throw closed("used");
    }
    try {
      return Native.wl_memory_pool_used(part.handle);
    } finally {
      part.unpin();
    }
  }

  /**
   * Allocates a tensor in this rank's part, zeroed and aligned to 64 bytes. The memory is freed by
   * {@link Tensor#close}, or once no view of it is reachable.
   *
   * @throws ResourceException if the pool or the machine has too little memory; the message has the
   *     requested and the free size
   * @throws WindlassException the communicator's failure, if the communicator is dead. A process
   *     that was declared dead may still write to the pool, and must not overwrite a new tensor
   */
  public Tensor allocate(DType dtype, long... shape) {
    long[] checked = ShapeChecks.checked("allocate", dtype, shape);
    long needed = Shapes.numel(checked) * dtype.bytes();
    if (!part.pin()) {
      throw closed("allocate");
    }
    long address = 0;
    Memory memory = null;
    try {
      address =
          Natives.call(
              (out, error) -> Native.wl_memory_pool_alloc(part.handle, needed, out, error));
      memory = part.memory(address, needed);
      return Tensor.over("allocate", memory, 0, dtype, checked);
    } finally {
      if (memory == null) {
        part.free(address);
      }
    }
  }

  private ClosedException closed(String what) {
    return new ClosedException(what + ": the memory pool of " + bytes + " bytes was closed");
  }

  /**
   * Ends allocation on this rank. The rank's tensors stay open until they are closed. The pool's
   * memory is freed once every rank has closed the pool and all tensors. Idempotent.
   */
  @Override
  public void close() {
    drop.close();
  }

  /** Owns the native handle, which every tensor of the pool pins. */
  private static final class Part extends Lifetime {
    private final Endpoint endpoint;
    private final long handle;

    Part(Endpoint endpoint, long handle) {
      this.endpoint = endpoint;
      this.handle = handle;
      endpoint.retain();
    }

    Memory memory(long address, long bytes) {
      return Memory.allocated(address, bytes, () -> free(address));
    }

    /**
     * Ends a pinned allocation at {@code address}. An address of 0 means that the allocation
     * failed.
     */
    void free(long address) {
      if (address != 0) {
        Native.wl_memory_pool_release(handle, address, 0);
      }
      unpin();
    }

    @Override
    protected void release() {
      Native.wl_memory_pool_free(handle);
      endpoint.release();
    }
  }
}
