// SPDX-License-Identifier: Apache-2.0
package org.windlass.cuda;

import java.util.Optional;

/** The CUDA presets of Bytedeco, as this process finds them. */
public final class CudaPresets {
  private static final String RUNTIME = "org.bytedeco.cuda.global.cudart";

  private CudaPresets() {}

  /**
   * Why calls of the presets can't be made here: their classes are not on the class path, their
   * natives are not, or there is no driver; empty if they can.
   */
  public static Optional<String> refusal() {
    try {
      Class.forName(RUNTIME);
      return Optional.empty();
    } catch (ClassNotFoundException missing) {
      return Optional.of(
          "class " + RUNTIME + " is not on the class path; org.bytedeco:cuda has it");
    } catch (LinkageError refused) {
      return Optional.of("class " + RUNTIME + " does not load: " + reason(refused));
    }
  }

  /** From the second time on a class that could not be initialised has its reason as the cause. */
  private static String reason(LinkageError refused) {
    boolean again = refused instanceof NoClassDefFoundError && refused.getCause() != null;
    return again ? refused.getCause().getMessage() : refused.getMessage();
  }
}
