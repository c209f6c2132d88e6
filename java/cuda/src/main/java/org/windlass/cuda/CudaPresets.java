// SPDX-License-Identifier: Apache-2.0
package org.windlass.cuda;

import java.util.Optional;

/** Checks whether this process can use CUDA through Bytedeco's Java classes, the presets. */
public final class CudaPresets {
  private static final String RUNTIME = "org.bytedeco.cuda.global.cudart";

  private CudaPresets() {}

  /**
   * Returns the reason why this process can't call CUDA through Bytedeco's classes: their classes
   * or natives are not on the class path, or there is no driver. Empty if calls work.
   */
  public static Optional<String> problem() {
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
   * Returns the reason why classes failed to load. Later errors contain the reason only as their
   * cause.
   */
  private static String reason(LinkageError refused) {
    Throwable first = refused instanceof NoClassDefFoundError ? refused.getCause() : null;
    return String.valueOf((first != null ? first : refused).getMessage());
  }
}
