// SPDX-License-Identifier: Apache-2.0
package org.windlass.internal.memory;

import java.lang.ref.Cleaner;
import java.nio.ByteBuffer;
import java.util.function.BooleanSupplier;
import org.windlass.error.UnsupportedException;
import org.windlass.internal.Failures;
import org.windlass.internal.Native;
import org.windlass.internal.NativeMemory;
import org.windlass.internal.Natives;
import org.windlass.internal.Scratch;

/**
 * One allocation: an address, its bytes, and what keeps them valid. Tensors are views of one; calls
 * pin it. Once ended, it is released when the last pin is gone.
 */
public final class Memory extends Lifetime {
  /** The largest piece of memory that one buffer shows. */
  public static final int MAX_BUFFER = Integer.MAX_VALUE - 8;

  public final long address;
  public final long bytes;
  public final boolean readOnly;

  /** Whether it lies where no thread of this process gets at it. */
  public final boolean onDevice;

  private final Object owner;
  private final BooleanSupplier alive;
  private final Leaks.Resource resource;
  private final Cleaner.Cleanable cleanable;

  private Memory(
      long address,
      long bytes,
      boolean readOnly,
      boolean onDevice,
      Object owner,
      BooleanSupplier alive,
      Leaks.Resource resource) {
    this.address = address;
    this.bytes = bytes;
    this.readOnly = readOnly;
    this.onDevice = onDevice;
    this.owner = owner;
    this.alive = alive;
    this.resource = resource;
    this.cleanable = resource == null ? null : Leaks.watch(this, resource);
  }

  /** Memory that {@code owner} keeps valid as long as it is reachable. */
  public static Memory of(long address, long bytes, boolean readOnly, Object owner) {
    return new Memory(address, bytes, readOnly, false, owner, null, null);
  }

  /** Memory of a device, which {@code owner} keeps valid as long as it is reachable. */
  public static Memory ofDevice(long address, long bytes, Object owner) {
    return new Memory(address, bytes, false, true, owner, null, null);
  }

  /** Memory that {@code owner} may take back; {@code alive} says whether it has. */
  public static Memory of(
      long address, long bytes, boolean readOnly, Object owner, BooleanSupplier alive) {
    return new Memory(address, bytes, readOnly, false, owner, alive, null);
  }

  /** Memory that {@code resource} frees, at {@link #end} or when nothing reaches it any more. */
  public static Memory of(long address, long bytes, Leaks.Resource resource) {
    return new Memory(address, bytes, false, false, null, null, resource);
  }

  /** The same of a device. */
  public static Memory ofDevice(long address, long bytes, Leaks.Resource resource) {
    return new Memory(address, bytes, false, true, null, null, resource);
  }

  /**
   * Zeroed memory aligned to 64 bytes; freed when ended or unreachable.
   *
   * @throws WindlassException where there is none
   */
  public static Memory allocate(long bytes) {
    Natives.require();
    try (Scratch scratch = Scratch.take()) {
      int code = Native.wl_memory_alloc(bytes, 64, scratch.out(), scratch.error());
      Failures.check(code, scratch);
      long address = scratch.outValue();
      return of(address, bytes, new OwnAllocation(address));
    }
  }

  /** Zeroed memory of the device that has {@code beside}; freed when ended or unreachable. */
  public static Memory allocateBeside(Memory beside, long bytes) {
    try (Scratch scratch = Scratch.take()) {
      int code =
          Native.wl_cuda_memory_alloc(beside.address, bytes, scratch.out(), scratch.error());
      Failures.check(code, scratch);
      long address = scratch.outValue();
      return new Memory(
          address, bytes, false, true, null, null, new DeviceAllocation(address));
    }
  }

  /** Whether what it was made over has been taken back by its owner. */
  public boolean lost() {
    return alive != null && !alive.getAsBoolean();
  }

  /** Who has ended it, as messages say: "... is over memory that was closed". */
  public String ending() {
    return ended() ? "was closed" : "its owner has closed";
  }

  /**
   * What a call says that takes host memory alone.
   *
   * @param what the call and its tensor, such as {@code put: local (f32[4])}
   */
  public RuntimeException notOfHost(String what) {
    return new UnsupportedException(
        what + " lies in a device's memory, where this call can't get at it; copy it to a host"
            + " tensor by the device's own calls, such as cudaMemcpy or cuMemcpyDtoH");
  }

  /** Whether a call may use it now; cheap, and only {@link #pin} makes the answer last. */
  public boolean usable() {
    return !ended() && !lost();
  }

  /** Pins it if it is still usable. */
  public boolean hold() {
    if (alive != null && !alive.getAsBoolean()) {
      return false;
    }
    return pin();
  }

  /**
   * A buffer over part of it, or null if it has ended. The memory stays pinned until neither the
   * buffer nor anything derived from it is reachable.
   */
  public ByteBuffer lend(long from, int length) {
    if (!hold()) {
      return null;
    }
    ByteBuffer base = NativeMemory.buffer(address + from, length);
    Leaks.watch(base, new Loan(this));
    ByteBuffer view = (readOnly ? base.asReadOnlyBuffer() : base.slice()).order(base.order());
    return view;
  }

  /** Ends memory of an {@link Allocation}, and no other. */
  public void endIfAllocated() {
    if (resource instanceof Allocation) {
      end();
    }
  }

  @Override
  protected void release() {
    if (cleanable != null) {
      resource.closed();
      cleanable.clean();
    }
  }

  /** The object that keeps the memory valid; null where the allocation is Windlass's own. */
  public Object owner() {
    return owner;
  }

  /** Frees memory that was allocated for its tensors alone; to be dropped is a proper end. */
  public abstract static class Allocation extends Leaks.Resource {
    protected Allocation() {
      super(null);
    }
  }

  private static final class OwnAllocation extends Allocation {
    private final long address;

    OwnAllocation(long address) {
      this.address = address;
    }

    @Override
    protected void free() {
      Native.wl_memory_free(address);
    }
  }

  private static final class DeviceAllocation extends Allocation {
    private final long address;

    DeviceAllocation(long address) {
      this.address = address;
    }

    @Override
    protected void free() {
      Native.wl_cuda_memory_free(address);
    }
  }

  /** A pin that lasts as long as a buffer that was given out. */
  private static final class Loan extends Leaks.Resource {
    private final Memory memory;

    Loan(Memory memory) {
      super(null);
      this.memory = memory;
    }

    @Override
    protected void free() {
      memory.unpin();
    }
  }
}
