// SPDX-License-Identifier: Apache-2.0
package org.windlass.internal;

import java.util.List;

/** Reports which parts of CANN, the Ascend toolkit, are missing for targets a2a3 and a5. */
record AscendToolkit() implements TargetToolkit {
  @Override
  public List<String> targets() {
    return List.of("a2a3", "a5");
  }

  @Override
  public String lacking(String target) {
    if (NativeLoader.has(target)) {
      return "";
    }
    return "this build has no libwindlass-" + target + ".so, for which a toolkit is looked for by "
        + folder("ASCEND_HOME_PATH") + " and " + folder("PTO_ISA_ROOT") + "; " + runtime();
  }

  private static String folder(String variable) {
    String value = System.getenv(variable);
    return variable + " (" + (value == null || value.isEmpty() ? "not set" : value) + ")";
  }

  private static String runtime() {
    String refusal = NativeLoader.ascendRefusal();
    return refusal == null ? "the Ascend runtime, libascendcl.so, opens" : refusal;
  }
}
