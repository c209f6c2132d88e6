// SPDX-License-Identifier: Apache-2.0
package org.windlass.internal.memory;

import java.lang.ref.Cleaner;
import java.nio.ByteBuffer;
import java.util.function.BooleanSupplier;
import org.jspecify.annotations.Nullable;
import org.windlass.error.UnsupportedException;
import org.windlass.internal.Failures;
import org.windlass.internal.Native;
import org.windlass.internal.NativeMemory;
import org.windlass.internal.Natives;
import org.windlass.internal.Scratch;

/**
 * One allocation of memory: its address, its size in bytes, and its owner. Tensors are views of an
 * allocation, and calls pin it.
 */
public final class Memory extends Lifetime {
  public static final int MAX_BUFFER = Integer.MAX_VALUE - 8;

  public final long address;
  public final long bytes;
  public final boolean readOnly;

  /** True for memory of a device, which threads of this process can't access directly. */
  public final boolean onDevice;

  private final @Nullable Object owner;
  private final @Nullable BooleanSupplier alive;
  private final Leaks.@Nullable Resource resource;
  private final Cleaner.@Nullable Cleanable cleanable;

  private Memory(
      long address,
      long bytes,
      boolean readOnly,
      boolean onDevice,
      @Nullable Object owner,
      @Nullable BooleanSupplier alive,
      Leaks.@Nullable Resource resource) {
    this.address = address;
    this.bytes = bytes;
    this.readOnly = readOnly;
    this.onDevice = onDevice;
    this.owner = owner;
    this.alive = alive;
    this.resource = resource;
    this.cleanable = resource == null ? null : Leaks.watch(this, resource);
  }

  /** Returns memory that is valid as long as {@code owner} is reachable. */
  public static Memory of(long address, long bytes, boolean readOnly, @Nullable Object owner) {
    return new Memory(address, bytes, readOnly, false, owner, null, null);
  }

  /** Returns device memory that is valid as long as {@code owner} is reachable. */
  public static Memory ofDevice(long address, long bytes, @Nullable Object owner) {
    return new Memory(address, bytes, false, true, owner, null, null);
  }

  /** Returns memory that {@code owner} may free at any time; {@code alive} is true until then. */
  public static Memory of(
      long address, long bytes, boolean readOnly, Object owner, BooleanSupplier alive) {
    return new Memory(address, bytes, readOnly, false, owner, alive, null);
  }

  /** Returns memory that {@code resource} frees at {@link #end} or once it is unreachable. */
  public static Memory of(long address, long bytes, Leaks.Resource resource) {
    return new Memory(address, bytes, false, false, null, null, resource);
  }

  /** Returns device memory that {@code resource} frees at {@link #end} or once unreachable. */
  public static Memory ofDevice(long address, long bytes, Leaks.Resource resource) {
    return new Memory(address, bytes, false, true, null, null, resource);
  }

  /**
   * Allocates zeroed memory, aligned to 64 bytes, freed when ended or unreachable. Throws a
   * ResourceException if there is not enough.
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

  /** Allocates zeroed memory on the device of {@code beside}. Freed when ended or unreachable. */
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

  /** Returns true if the owner has freed the memory. */
  public boolean lost() {
    return alive != null && !alive.getAsBoolean();
  }

  /** Returns the end of a message that says what ended the memory, such as {@code was closed}. */
  public String ending() {
    return ended() ? "was closed" : "its owner has closed";
  }

  /** Returns the exception for {@code what}, a call and its tensor, that takes only host memory. */
  public RuntimeException notOfHost(String what) {
    return new UnsupportedException(
        what + " lies in a device's memory, where this call can't get at it; copy it to a host"
            + " tensor by the device's own calls, such as cudaMemcpy or cuMemcpyDtoH");
  }

  /** Returns true if a call may use the memory now. It may end afterwards, unless it is pinned. */
  public boolean usable() {
    return !ended() && !lost();
  }

  /** Pins the memory, and returns true. Returns false, without a pin, if it has ended. */
  public boolean hold() {
    if (alive != null && !alive.getAsBoolean()) {
      return false;
    }
    return pin();
  }

  /**
   * Returns a buffer over {@code length} bytes from byte {@code from} on, or null if the memory has
   * ended. The memory stays pinned while the buffer, or one derived from it, is reachable.
   */
  public @Nullable ByteBuffer lend(long from, int length) {
    if (!hold()) {
      return null;
    }
    ByteBuffer base = NativeMemory.buffer(address + from, length);
    Leaks.watch(base, new Loan(this));
    ByteBuffer view = (readOnly ? base.asReadOnlyBuffer() : base.slice()).order(base.order());
    return view;
  }

  /** Ends memory that was allocated for tensors. Does nothing for other memory. */
  public void endIfAllocated() {
    if (resource instanceof Allocation) {
      end();
    }
  }

  @Override
  protected void release() {
    if (resource != null && cleanable != null) {
      resource.closed();
      cleanable.clean();
    }
  }

  /** Returns the object that keeps the memory valid. Null if Windlass has allocated the memory. */
  public @Nullable Object owner() {
    return owner;
  }

  /** Frees memory that was allocated for tensors. Dropping them without a close is no leak. */
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
