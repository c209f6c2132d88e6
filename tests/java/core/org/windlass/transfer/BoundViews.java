// SPDX-License-Identifier: Apache-2.0
package org.windlass.transfer;

import org.windlass.Tensor;
import org.windlass.internal.memory.Memory;
import org.windlass.internal.transfer.Views;

/**
 * Views as tests bind them: tensors in a device's memory in processes where the stand-in for
 * NVIDIA's driver has all memory on devices, that of hosts too.
 */
public final class BoundViews {
  private static final boolean ARE_ON_DEVICES =
      "devices".equals(System.getenv("WINDLASS_STAND_IN_MEMORY"));

  private BoundViews() {}

  /** A tensor of the host, whose elements the test reads and writes, as a transfer takes it. */
  public static Tensor of(Tensor host) {
    if (!ARE_ON_DEVICES || host == null) {
      return host;
    }
    Memory memory = Memory.ofDevice(host.address(), Views.span(host), host);
    return host.at(memory, host.address());
  }

  /** A view in a device's memory as this process reads its elements. */
  public static Tensor onHost(Tensor view) {
    Memory memory = Memory.of(view.address(), Views.span(view), true, view);
    return view.at(memory, view.address());
  }
}
