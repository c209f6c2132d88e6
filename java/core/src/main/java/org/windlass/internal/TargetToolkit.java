// SPDX-License-Identifier: Apache-2.0
package org.windlass.internal;

import java.util.List;

/** What the targets other than {@code sim} need: who compiles their kernels, and who runs them. */
public sealed interface TargetToolkit permits AscendToolkit, CheckedToolkit, CudaToolkit {
  /** All toolkits, in the order in which their targets are listed. */
  List<TargetToolkit> ALL = List.of(new CheckedToolkit(), new CudaToolkit(), new AscendToolkit());

  /** Toolkit of {@code target}; null for {@code sim}. */
  static TargetToolkit of(String target) {
    return ALL.stream()
        .filter(toolkit -> toolkit.targets().contains(target))
        .findFirst()
        .orElse(null);
  }

  /** Targets whose kernels it compiles and runs. */
  List<String> targets();

  /**
   * What is missing here for {@code target}, with what was looked for, and where. Empty if nothing
   * is missing that shows before an operation runs. Some target's library is loaded.
   */
  String lacking(String target);
}
