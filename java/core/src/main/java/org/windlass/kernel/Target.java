// SPDX-License-Identifier: Apache-2.0
package org.windlass.kernel;

import java.util.Locale;
import java.util.Objects;
import org.windlass.error.InvalidArgumentException;
import org.windlass.error.UnsupportedException;
import org.windlass.internal.Native;
import org.windlass.internal.NativeLoader;
import org.windlass.internal.Natives;
import org.windlass.internal.TargetToolkit;

/** The targets for which kernels are compiled. */
public enum Target {
  /** This machine's processor, with kernels at full speed. */
  SIM,
  /** This machine's processor, with checks that kernels keep the limits of Ascend A2 and A3. */
  A2A3SIM,
  /** This machine's processor, with checks that kernels keep the limits of Ascend A5. */
  A5SIM,
  /** NVIDIA GPUs. */
  CUDA,
  /** Ascend A2 and A3. */
  A2A3,
  /** Ascend A5. */
  A5;

  /**
   * Returns the target of the loaded native library.
   *
   * @throws UnsupportedException if the native library does not load
   * @throws InvalidArgumentException if the value of {@code WINDLASS_TARGET} is not a target
   */
  public static Target loaded() {
    Natives.require();
    return parse(Native.wl_target());
  }

  /** Returns true if this process can make communicators of this target on this machine. */
  public boolean available() {
    return whyNot().isEmpty();
  }

  /** Returns the reason why {@link #available} returns false. Empty if it returns true. */
  public String whyNot() {
    boolean loaded = this == loaded();
    TargetToolkit toolkit = TargetToolkit.of(toString());
    String lacking = toolkit == null ? "" : toolkit.lacking(toString());
    return loaded || !lacking.isEmpty()
        ? lacking
        : "this process runs another target's kernels; WINDLASS_TARGET=" + this
            + " selects these";
  }

  /**
   * Returns the target with this name, such as {@code sim}. Case doesn't matter.
   *
   * @throws InvalidArgumentException if there is no such target
   */
  public static Target parse(String name) {
    Objects.requireNonNull(name, "name");
    for (Target target : values()) {
      if (target.name().equalsIgnoreCase(name)) {
        return target;
      }
    }
    throw new InvalidArgumentException("target is " + NativeLoader.unknown(name));
  }

  /**
   * Makes this process run the kernels of this target. Call it before other parts of Windlass. A
   * process runs the kernels of only one target, which it selects at its first call: this target,
   * or else the one that the environment variable {@code WINDLASS_TARGET} or the system property
   * {@code org.windlass.target} names.
   *
   * @throws UnsupportedException if this build lacks the target's kernels, or the process already
   *     runs another target's
   */
  public void use() {
    if (NativeLoader.has(toString())) {
      NativeLoader.select(toString());
    }
    require();
  }

  /** Throws {@link UnsupportedException} unless this target is available. */
  public void require() {
    if (!available()) {
      throw new UnsupportedException("target " + this + " is not available here: " + whyNot());
    }
  }

  @Override
  public String toString() {
    return name().toLowerCase(Locale.ROOT);
  }
}
