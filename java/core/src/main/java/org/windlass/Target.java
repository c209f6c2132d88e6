// SPDX-License-Identifier: Apache-2.0
package org.windlass;

import java.util.Locale;
import java.util.Objects;
import java.util.stream.Collectors;
import java.util.stream.Stream;
import org.windlass.internal.AscendToolkit;
import org.windlass.internal.Native;
import org.windlass.internal.NativeLoader;
import org.windlass.internal.Natives;

/** The targets that kernels are compiled for. */
public enum Target {
  /** This machine's processor, fast. */
  SIM("this process runs another target's kernels; WINDLASS_TARGET=sim has one run these"),
  /** This machine's processor, checked against what Ascend A2 and A3 allow. */
  A2A3SIM("this process runs another target's kernels; WINDLASS_TARGET=a2a3sim has one run these"),
  /** This machine's processor, checked against what Ascend A5 allows. */
  A5SIM("this process runs another target's kernels; WINDLASS_TARGET=a5sim has one run these"),
  /** NVIDIA GPUs. */
  CUDA("this build holds no cuda kernels"),
  /** Ascend A2 and A3. */
  A2A3(null),
  /** Ascend A5. */
  A5(null);

  /** Null where it depends on what this machine has of the Ascend toolkit. */
  private final String whyNot;

  Target(String whyNot) {
    this.whyNot = whyNot;
  }

  /**
   * The target that the native library was built for.
   *
   * @throws UnsupportedException if that does not load
   */
  public static Target loaded() {
    Natives.require(WindlassException::of);
    return parse(Native.wl_target());
  }

  /** Whether communicators of this target can be made here. */
  public boolean available() {
    return this == loaded();
  }

  /** Why it isn't available; empty if it is. */
  public String whyNot() {
    if (available()) {
      return "";
    }
    return whyNot == null ? AscendToolkit.whyNot(toString()) : whyNot;
  }

  /** The target with this name, such as {@code sim}; case doesn't matter. */
  public static Target parse(String name) {
    Objects.requireNonNull(name, "name");
    for (Target target : values()) {
      if (target.name().equalsIgnoreCase(name)) {
        return target;
      }
    }
    throw new InvalidArgumentException(
        "target is \"" + name + "\"; known are "
            + Stream.of(values()).map(Target::toString).collect(Collectors.joining(", ")));
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
