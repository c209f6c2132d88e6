// SPDX-License-Identifier: Apache-2.0
package org.windlass.internal.memory;

import java.nio.ByteBuffer;
import java.util.function.BooleanSupplier;
import org.jspecify.annotations.Nullable;
import org.windlass.error.UnsupportedException;
import org.windlass.internal.Native;
import org.windlass.internal.NativeMemory;
import org.windlass.internal.Natives;

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
  private final boolean isAllocated;
  private final Leaks.@Nullable Resource resource;

  private Memory(
      long address,
      long bytes,
      boolean readOnly,
      boolean onDevice,
      @Nullable Object owner,
      @Nullable BooleanSupplier alive) {
    this.address = address;
    this.bytes = bytes;
    this.readOnly = readOnly;
    this.onDevice = onDevice;
    this.owner = owner;
    this.alive = alive;
    this.isAllocated = false;
    this.resource = null;
  }

  private Memory(
      long address,
      long bytes,
      boolean onDevice,
      boolean isAllocated,
      @Nullable String what,
      Runnable free) {
    this.address = address;
    this.bytes = bytes;
    this.readOnly = false;
    this.onDevice = onDevice;
    this.owner = null;
    this.alive = null;
    this.isAllocated = isAllocated;
    this.resource = Leaks.watch(this, what, free);
  }

  /** Returns memory that is valid as long as {@code owner} is reachable. */
  public static Memory of(long address, long bytes, boolean readOnly, @Nullable Object owner) {
    return new Memory(address, bytes, readOnly, false, owner, null);
  }

  /** Returns device memory that is valid as long as {@code owner} is reachable. */
  public static Memory ofDevice(long address, long bytes, @Nullable Object owner) {
    return new Memory(address, bytes, false, true, owner, null);
  }

  /** Returns memory that {@code owner} may free at any time; {@code alive} is true until then. */
  public static Memory of(
      long address, long bytes, boolean readOnly, Object owner, BooleanSupplier alive) {
    return new Memory(address, bytes, readOnly, false, owner, alive);
  }

  /**
   * Returns memory that {@code free} frees at {@link #end} or once it is unreachable.
   *
   * @param what the name that a leak report uses; null if dropping the memory is no leak
   */
  public static Memory of(
      long address, long bytes, boolean onDevice, @Nullable String what, Runnable free) {
    return new Memory(address, bytes, onDevice, false, what, free);
  }

  /** Returns memory that was allocated for tensors. {@code free} frees it, as in {@link #of}. */
  public static Memory allocated(long address, long bytes, Runnable free) {
    return new Memory(address, bytes, false, true, null, free);
  }

  /**
   * Allocates zeroed memory, aligned to 64 bytes, freed when ended or unreachable. Throws a
   * ResourceException if there is not enough.
   */
  public static Memory allocate(long bytes) {
    long address = Natives.call((out, error) -> Native.wl_memory_alloc(bytes, 64, out, error));
    return allocated(address, bytes, () -> Native.wl_memory_free(address));
  }

  /** Allocates zeroed memory on the device of {@code beside}. Freed when ended or unreachable. */
  public static Memory allocateBeside(Memory beside, long bytes) {
    long address =
        Natives.call(
            (out, error) -> Native.wl_cuda_memory_alloc(beside.address, bytes, out, error));
    return new Memory(
        address, bytes, true, true, null, () -> Native.wl_cuda_memory_free(address));
  }

  /** Returns true if the owner has freed the memory. */
  public boolean lost() {
    return alive != null && !alive.getAsBoolean();
  }

  /** Returns the end of a message that says why the memory is gone, such as {@code was closed}. */
  public String ending() {
    return ended() ? "was closed" : "its owner has closed";
  }

  /**
   * Returns the exception of {@code what}, a call and its tensor, if the call accepts only host
   * memory.
   */
  public RuntimeException notOfHost(String what) {
    return new UnsupportedException(
        what + " is in a device's memory, which this call can't access; copy it to a host tensor"
            + " with the device's own calls, such as cudaMemcpy or cuMemcpyDtoH");
  }

  /**
   * Returns true if a call may use the memory now. Unless it is pinned, the memory may be freed
   * afterwards.
   */
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
    Leaks.watch(base, null, this::unpin);
    ByteBuffer view = (readOnly ? base.asReadOnlyBuffer() : base.slice()).order(base.order());
    return view;
  }

  /** Ends memory that was allocated for tensors. Does nothing for other memory. */
  public void endIfAllocated() {
    if (isAllocated) {
      end();
    }
  }

  @Override
  protected void release() {
    if (resource != null) {
      resource.close();
    }
  }

  /** Returns the object that keeps the memory valid. Null if Windlass has allocated the memory. */
  public @Nullable Object owner() {
    return owner;
  }
}
