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
 * Describes the NVIDIA driver of this machine and the GPUs that this process sees, numbered from 0.
 * The methods need the native library, for any target. If it does not load, each throws {@link
 * UnsupportedException}.
 */
public final class CudaDriver {
  private CudaDriver() {}

  /**
   * One GPU.
   *
   * @param name the driver's name for it, such as {@code NVIDIA H100 80GB HBM3}
   * @param major the major number of its compute capability
   * @param minor the minor number of its compute capability
   * @param multiprocessors the number of its multiprocessors
   * @param totalBytes the size of its memory in bytes
   * @param freeBytes the free bytes of its memory at the time of the query
   * @param cuda the CUDA version that the driver supports, such as {@code 13.0}
   */
  public record Device(
      String name,
      int major,
      int minor,
      int multiprocessors,
      long totalBytes,
      long freeBytes,
      String cuda) {
    public Device {
      Objects.requireNonNull(name, "name");
      Objects.requireNonNull(cuda, "cuda");
    }
  }

  /**
   * Returns the reason why no GPU is available: no driver, a driver that is too old, or no device.
   * Empty if a GPU is available.
   */
  public static Optional<String> problem() {
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
   * Returns the number of GPUs that this process sees.
   *
   * @throws UnsupportedException if there is no driver, or one that is too old
   */
  public static int deviceCount() {
    return (int) Natives.call(Native::wl_cuda_device_count);
  }

  /**
   * Returns the driver's description of one GPU. The call makes a context of this process on the
   * GPU, unless the process already has one. A context takes a few hundred MiB of GPU memory.
   *
   * @throws InvalidArgumentException if there is no such GPU
   * @throws DeviceException if the driver fails
   * @throws ResourceException if another process uses the GPU exclusively, or the GPU's memory is
   *     full
   */
  public static Device device(int device) {
    requireNumber(device);
    ByteBuffer found = Structs.allocate(Structs.CudaDevice.SIZE);
    found.putInt(0, Structs.CudaDevice.SIZE);
    long address = NativeMemory.address(found);
    Natives.call((out, error) -> Native.wl_cuda_device(device, address, error));
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
   * Returns true if the driver reports that GPU {@code from} can access the memory of GPU {@code
   * to}.
   *
   * @throws InvalidArgumentException if there is no such GPU
   */
  public static boolean reaches(int from, int to) {
    requireNumber(from);
    requireNumber(to);
    return Natives.call((out, error) -> Native.wl_cuda_peer(from, to, out, error)) != 0;
  }

  /** Throws InvalidArgumentException for a negative number, since the C ABI takes unsigned ones. */
  static void requireNumber(int device) {
    if (device < 0) {
      throw new InvalidArgumentException(
          "there is no device " + device + ": they are numbered from 0");
    }
  }
}
