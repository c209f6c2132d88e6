// SPDX-License-Identifier: Apache-2.0
package org.windlass.cuda;

import java.util.Optional;

/** Checks whether this process can use Bytedeco's CUDA presets. */
public final class CudaPresets {
  private static final String RUNTIME = "org.bytedeco.cuda.global.cudart";

  private CudaPresets() {}

  /**
   * Returns the reason why this process can't call the presets. Their classes or natives may be
   * missing from the class path, or there may be no driver. Empty if calls work.
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

  /**
   * Returns the reason of a failed load. After the first attempt, the JVM reports it only as the
   * cause of the error.
   */
  private static String reason(LinkageError refused) {
    boolean again = refused instanceof NoClassDefFoundError && refused.getCause() != null;
    return again ? refused.getCause().getMessage() : refused.getMessage();
  }
}
