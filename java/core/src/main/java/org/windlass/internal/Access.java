// SPDX-License-Identifier: Apache-2.0
package org.windlass.internal;

import java.time.Duration;
import java.util.function.Function;
import java.util.function.IntToLongFunction;

/**
 * The way into an object of a public type for the packages above its own, in terms of this package.
 * A type opens its objects as it is initialised, and so before anybody has one.
 *
 * @param <R> what is reached
 */
public final class Access<R> {
  /** Of a communicator. */
  public static final Access<Endpoint> ENDPOINT = new Access<>();

  /** Of a communicator: makes another of this process's ranks. */
  public static final Access<Adoption> ADOPTION = new Access<>();

  /** Of a tensor. */
  public static final Access<Memory> MEMORY = new Access<>();

  /** Of a tensor: makes its like over other memory. */
  public static final Access<Relocation> RELOCATION = new Access<>();

  /** Of a window: where each rank's part lies in this process, as long as the window is open. */
  public static final Access<IntToLongFunction> PARTS = new Access<>();

  /** Of a layout. */
  public static final Access<Cutting> CUTTING = new Access<>();

  /** Of a plan: gives the steps of a transfer that it is the first plan of. */
  public static final Access<Scheduling> SCHEDULING = new Access<>();

  private volatile Function<Object, R> inside;

  private Access() {}

  /** Called by the initialiser of {@code type} alone. */
  public <T> void open(Class<T> type, Function<? super T, ? extends R> inside) {
    this.inside = object -> inside.apply(type.cast(object));
  }

  /** What is inside {@code object}, which is of the type that opened this. */
  public R of(Object object) {
    return inside.apply(object);
  }

  /** Makes communicators. */
  @FunctionalInterface
  public interface Adoption {
    /**
     * A communicator that stands alone.
     *
     * @param handle a {@code wl_comm_t*}, which it takes over
     * @param deadline its group's, where a call names none
     * @param maker the call that made it, for what is said of one that nobody closes
     */
    Object of(long handle, Duration deadline, String maker);
  }

  /** Makes tensors. */
  @FunctionalInterface
  public interface Relocation {
    /** A tensor of the same dtype, shape and strides at {@code address} in {@code memory}. */
    Object to(Memory memory, long address);
  }

  /** Cuts tensors. */
  @FunctionalInterface
  public interface Cutting {
    /** How {@code dim} is cut, whose first {@code extent} of {@code padded} elements are real. */
    Cut of(int dim, long extent, long padded);
  }

  /** Makes schedules. */
  @FunctionalInterface
  public interface Scheduling {
    /** Gives the steps of {@code rank} in a transfer of {@code plans} to {@code steps}. */
    void of(Iterable<?> plans, int rank, Steps steps);
  }
}
