// SPDX-License-Identifier: Apache-2.0
package org.windlass;

import java.util.Optional;
import org.windlass.error.InvalidArgumentException;
import org.windlass.error.UnsupportedException;
import org.windlass.internal.Native;
import org.windlass.internal.NativeLoader;
import org.windlass.internal.Natives;
import org.windlass.internal.PeerMemory;
import org.windlass.internal.UcxLibrary;

/**
 * Describes the native library of this process: whether it loads, its location, its version, and
 * its view of the machine. If it does not load, all methods except {@link #problem} throw {@link
 * UnsupportedException}.
 */
public final class NativeLibrary {
  private NativeLibrary() {}

  /** Returns why the library does not load, with each location searched. Empty if it loads. */
  public static Optional<String> problem() {
    return Natives.refusal();
  }

  /** Returns the location from which the library was loaded: a folder or a jar. */
  public static String place() {
    Natives.require();
    return NativeLoader.loadedFrom();
  }

  /** Returns the library's version. */
  public static String version() {
    Natives.require();
    return Native.wl_version();
  }

  /** Returns the version of the C ABI of the library. */
  public static int abiVersion() {
    Natives.require();
    return Native.wl_abi_version();
  }

  /** Returns the instructions that kernels of target {@code sim} use here, such as {@code avx2}. */
  public static String vectorPath() {
    Natives.require();
    return Native.wl_isa_path();
  }

  /**
   * Returns how this process would access memory outside windows in other processes, and why. The
   * text is {@code process_vm_readv: ...} for a direct read, or {@code stage: ...} for a copy
   * through shared memory. The answer does not depend on other processes.
   *
   * @throws InvalidArgumentException if {@code WINDLASS_PEER_MEMORY} names neither
   */
  public static String peerMemory() {
    Natives.require();
    return PeerMemory.of(PeerMemory.NO_COMM);
  }

  /**
   * Returns the UCX version and this host's network devices, such as {@code 1.13.1: eth0 lo}. UCX
   * carries the data between hosts. UCX stays open in this process.
   *
   * @throws UnsupportedException if UCX is not installed, or this host has none of the devices that
   *     {@code WINDLASS_UCX_NET_DEVICES} names
   */
  public static String ucx() {
    Natives.require();
    return UcxLibrary.describe();
  }

  /** Returns the number of cores that this process may use, by affinity and quota. */
  public static int allowedCores() {
    Natives.require();
    return Native.wl_allowed_cores();
  }
}
