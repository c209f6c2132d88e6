// SPDX-License-Identifier: Apache-2.0
package org.windlass.internal;

import java.util.List;

/** Reports whether the build has the checked targets, which run on any x86-64 processor. */
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
