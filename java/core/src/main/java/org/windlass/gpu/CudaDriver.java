// SPDX-License-Identifier: Apache-2.0
package org.windlass.gpu;

import java.nio.ByteBuffer;
import java.util.Objects;
import java.util.Optional;
import org.windlass.error.DeviceException;
import org.windlass.error.InvalidArgumentException;
import org.windlass.error.ResourceException;
import org.windlass.error.UnsupportedException;
import org.windlass.internal.Failures;
import org.windlass.internal.Native;
import org.windlass.internal.NativeMemory;
import org.windlass.internal.Natives;
import org.windlass.internal.Scratch;
import org.windlass.internal.Structs;

/**
 * NVIDIA's driver of this machine, and the GPUs that it shows to this process, numbered from 0. Any
 * target's natives tell of them; where none load, each call throws {@link UnsupportedException}.
 */
public final class CudaDriver {
  private CudaDriver() {}

  /**
   * One GPU.
   *
   * @param name as the driver has it, such as {@code NVIDIA H100 80GB HBM3}
   * @param major of its compute capability
   * @param minor of its compute capability
   * @param multiprocessors how many it has
   * @param totalBytes of its memory
   * @param freeBytes of its memory, when it was looked at
   * @param cuda the version of CUDA that the driver is for, such as {@code 13.0}
   */
  public record Device(
      String name,
      int major,
      int minor,
      int multiprocessors,
      long totalBytes,
      long freeBytes,
      String cuda) {
    /** What the driver says. */
    public Device {
      Objects.requireNonNull(name, "name");
      Objects.requireNonNull(cuda, "cuda");
    }
  }

  /** Why no GPU is to be had: no driver, one that is too old, or no device; empty if one is. */
  public static Optional<String> refusal() {
    Natives.require();
    try (Scratch scratch = Scratch.take()) {
      int code = Native.wl_cuda_find(scratch.error());
      return code == Native.WL_OK
          ? Optional.empty()
          : Optional.of(
              Failures.of(code, scratch.errorBuffer()).getMessage());
    }
  }

  /**
   * How many GPUs this process sees.
   *
   * @throws UnsupportedException if there is no driver, or one that is too old
   */
  public static int deviceCount() {
    Natives.require();
    try (Scratch scratch = Scratch.take()) {
      check(Native.wl_cuda_device_count(scratch.out(), scratch.error()), scratch);
      return (int) scratch.outValue();
    }
  }

  /**
   * What the driver says of one of them. It gets a context of this process, some hundred MiB of its
   * memory, unless it has one.
   *
   * @throws InvalidArgumentException if there is no such GPU
   * @throws DeviceException if the driver fails
   * @throws ResourceException if another process has it for itself, or its memory is full
   */
  public static Device device(int device) {
    Natives.require();
    requireNumber(device);
    ByteBuffer found = Structs.allocate(Structs.CudaDevice.SIZE);
    found.putInt(0, Structs.CudaDevice.SIZE);
    try (Scratch scratch = Scratch.take()) {
      long address = NativeMemory.address(found);
      check(Native.wl_cuda_device(device, address, scratch.error()), scratch);
    }
    int room = Structs.CudaDevice.SIZE - Structs.CudaDevice.NAME;
    int version = found.getInt(Structs.CudaDevice.DRIVER_VERSION);
    return new Device(
        Structs.text(found, Structs.CudaDevice.NAME, room),
        found.getInt(Structs.CudaDevice.MAJOR),
        found.getInt(Structs.CudaDevice.MINOR),
        found.getInt(Structs.CudaDevice.MULTIPROCESSORS),
        found.getLong(Structs.CudaDevice.TOTAL_BYTES),
        found.getLong(Structs.CudaDevice.FREE_BYTES),
        version / 1000 + "." + version % 1000 / 10);
  }

  /**
   * Whether the driver says that GPU {@code from} reaches the memory of GPU {@code to}.
   *
   * @throws InvalidArgumentException if there is no such GPU
   */
  public static boolean reaches(int from, int to) {
    Natives.require();
    requireNumber(from);
    requireNumber(to);
    try (Scratch scratch = Scratch.take()) {
      check(Native.wl_cuda_peer(from, to, scratch.out(), scratch.error()), scratch);
      return scratch.outValue() != 0;
    }
  }

  /** Refuses what the C ABI, whose numbers have no sign, would call by another number. */
  static void requireNumber(int device) {
    if (device < 0) {
      throw new InvalidArgumentException(
          "there is no device " + device + ": they are numbered from 0");
    }
  }

  private static void check(int code, Scratch scratch) {
    Failures.check(code, scratch);
  }
}
