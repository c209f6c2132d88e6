// SPDX-License-Identifier: Apache-2.0
package org.windlass.internal;

import java.util.List;

/** What targets take whose kernels run on devices: who compiles them, and who runs them. */
public sealed interface DeviceToolkit permits AscendToolkit, CudaToolkit {
  /** Those there are. */
  List<DeviceToolkit> ALL = List.of(new CudaToolkit(), new AscendToolkit());

  /** That of {@code target}; null where the processor runs its kernels. */
  static DeviceToolkit of(String target) {
    return ALL.stream()
        .filter(toolkit -> toolkit.targets().contains(target))
        .findFirst()
        .orElse(null);
  }

  /** Those whose kernels are compiled and run by it. */
  List<String> targets();

  /**
   * What is missing here for {@code target}, with what was looked for, and where; empty: nothing
   * that shows before an operation runs. Some target's library is loaded.
   */
  String lacking(String target);
}
