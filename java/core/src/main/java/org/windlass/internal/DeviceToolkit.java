// SPDX-License-Identifier: Apache-2.0
package org.windlass.internal;

import java.util.stream.Stream;

/** What targets take whose kernels run on devices: who compiles them, and who runs them. */
public sealed interface DeviceToolkit permits AscendToolkit, CudaToolkit {
  /** That of {@code target}; null where the processor runs its kernels. */
  static DeviceToolkit of(String target) {
    return Stream.of(new AscendToolkit(), new CudaToolkit())
        .filter(toolkit -> toolkit.serves(target))
        .findFirst()
        .orElse(null);
  }

  /** Whether kernels of that target are compiled and run by it. */
  boolean serves(String target);

  /**
   * What is missing here for {@code target}, with what was looked for, and where; empty: nothing
   * that shows before an operation runs. Some target's library is loaded.
   */
  String lacking(String target);
}
