// SPDX-License-Identifier: Apache-2.0
package org.windlass.internal;

import java.util.List;
import org.jspecify.annotations.Nullable;

/** The software that a target other than {@code sim} needs to compile and run its kernels. */
public sealed interface TargetToolkit permits AscendToolkit, CheckedToolkit, CudaToolkit {
  /** All toolkits, in the order in which their targets are listed for users. */
  List<TargetToolkit> ALL = List.of(new CheckedToolkit(), new CudaToolkit(), new AscendToolkit());

  /** Returns the toolkit of {@code target}, or null for {@code sim}. */
  static @Nullable TargetToolkit of(String target) {
    return ALL.stream()
        .filter(toolkit -> toolkit.targets().contains(target))
        .findFirst()
        .orElse(null);
  }

  List<String> targets();

  /**
   * Returns what {@code target} lacks on this machine, with the places searched. Empty if nothing
   * is known to be missing before an operation runs. The native library must be loaded, for any
   * target.
   */
  String lacking(String target);
}
