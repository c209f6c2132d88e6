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

/** The targets that kernels are compiled for. */
public enum Target {
  /** This machine's processor, fast. */
  SIM,
  /** This machine's processor, checked against what Ascend A2 and A3 allow. */
  A2A3SIM,
  /** This machine's processor, checked against what Ascend A5 allows. */
  A5SIM,
  /** NVIDIA GPUs. */
  CUDA,
  /** Ascend A2 and A3. */
  A2A3,
  /** Ascend A5. */
  A5;

  /**
   * The target that the native library was built for.
   *
   * @throws UnsupportedException if that does not load
   * @throws InvalidArgumentException if {@code WINDLASS_TARGET} names no target
   */
  public static Target loaded() {
    Natives.require();
    return parse(Native.wl_target());
  }

  /** Whether communicators of this target can be made here. */
  public boolean available() {
    return whyNot().isEmpty();
  }

  /** Why it isn't available; empty if it is. */
  public String whyNot() {
    boolean loaded = this == loaded();
    TargetToolkit toolkit = TargetToolkit.of(toString());
    String lacking = toolkit == null ? "" : toolkit.lacking(toString());
    return loaded || !lacking.isEmpty()
        ? lacking
        : "this process runs another target's kernels; WINDLASS_TARGET=" + this
            + " has one run these";
  }

  /** The target with this name, such as {@code sim}; case doesn't matter. */
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
   * Has this process run the kernels of this target. It runs those of one: of the first that it
   * uses, or of environment variable {@code WINDLASS_TARGET} or system property {@code
   * org.windlass.target} where anything else of Windlass comes before.
   *
   * @throws UnsupportedException if this build lacks its kernels, or the process runs another's
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
