// SPDX-License-Identifier: Apache-2.0
package org.windlass.internal;

import java.util.List;

/**
 * Toolkit of the checked targets. Any x86-64 processor runs their kernels. A build may leave these
 * targets out.
 */
record CheckedToolkit() implements TargetToolkit {
  @Override
  public List<String> targets() {
    return List.of("a2a3sim", "a5sim");
  }

  @Override
  public String lacking(String target) {
    return NativeLoader.has(target)
        ? ""
        : "this build has no libwindlass-" + target + ".so; in a checkout on x86-64, scripts/demo --target "
            + target + " or mvn package builds it";
  }
}
