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
 * The native library of this process: whether it loads, where from, and what it says of itself and of
 * the machine. Where it does not load, all but {@link #refusal} throw {@link UnsupportedException}.
 */
public final class NativeLibrary {
  private NativeLibrary() {}

  /** Each place where it was looked for, and what was wrong there; empty where it loads. */
  public static Optional<String> refusal() {
    return Natives.refusal();
  }

  /** Where it was loaded from: a folder, or the jar of this platform. */
  public static String place() {
    Natives.require();
    return NativeLoader.loadedFrom();
  }

  /** Its version. */
  public static String version() {
    Natives.require();
    return Native.wl_version();
  }

  /** The version of its C ABI. */
  public static int abiVersion() {
    Natives.require();
    return Native.wl_abi_version();
  }

  /** The instructions that kernels of target {@code sim} use here, such as {@code avx2}. */
  public static String vectorPath() {
    Natives.require();
    return Native.wl_isa_path();
  }

  /**
   * How this process would get at memory outside windows of ranks in other processes, as far as it
   * can tell alone, and why: {@code process_vm_readv: ...} or {@code stage: ...}.
   *
   * @throws InvalidArgumentException if {@code WINDLASS_PEER_MEMORY} names neither
   */
  public static String peerMemory() {
    Natives.require();
    return PeerMemory.of(PeerMemory.NO_COMM);
  }

  /**
   * What carries bytes between hosts: UCX's version, and the network devices that are here, such as
   * {@code 1.13.1: eth0 lo}. UCX stays open in this process.
   *
   * @throws UnsupportedException if UCX is not installed, or none of the devices that {@code
   *     WINDLASS_UCX_NET_DEVICES} names is here
   */
  public static String ucx() {
    Natives.require();
    return UcxLibrary.describe();
  }

  /** The cores that this process may use, by affinity and quota. */
  public static int allowedCores() {
    Natives.require();
    return Native.wl_allowed_cores();
  }
}
