// SPDX-License-Identifier: Apache-2.0
package org.windlass.reshard;

import java.util.List;
import java.util.Objects;
import org.windlass.DType;
import org.windlass.internal.Copies;

/**
 * What a redistribution did.
 *
 * @param tensors how many tensors moved
 * @param defaulted those to which a default layout applied as R
 * @param bytesIn bytes of the tensors that were read, replicas and terms counted
 * @param bytesOut bytes of the tensors that were written, replicas counted
 * @param sentBytes bytes that crossed ranks by the layouts' plan
 * @param localBytes bytes that stayed on their rank by the layouts' plan
 * @param seconds from the open to the new name, without the verification
 * @param casts what was read to be written, by dtypes
 * @param verified whether replicas and the result were compared
 * @param copied names of files beside IN's tensors that stand beside OUT's too
 * @param leftOut names of the others
 * @param warnings what is odd about the request or its result, and was no reason to refuse it
 */
public record ReshardResult(
    int tensors,
    int defaulted,
    long bytesIn,
    long bytesOut,
    long sentBytes,
    long localBytes,
    double seconds,
    List<Cast> casts,
    boolean verified,
    List<String> copied,
    List<String> leftOut,
    List<String> warnings) {

  /**
   * What was read in one dtype and written in another, or in the same.
   *
   * @param from the dtype in IN
   * @param to the dtype in OUT
   * @param bytes as they were read, once for each replica that was written
   */
  public record Cast(DType from, DType to, long bytes) {
    /** Checks the components. */
    public Cast {
      Objects.requireNonNull(from, "from");
      Objects.requireNonNull(to, "to");
    }
  }

  /** Copies the lists. */
  public ReshardResult {
    casts = Copies.list(casts, "casts");
    copied = Copies.list(copied, "copied");
    leftOut = Copies.list(leftOut, "leftOut");
    warnings = Copies.list(warnings, "warnings");
  }

  /** Written bytes a second, in units of 1e9. */
  public double gigabytesPerSecond() {
    return bytesOut / seconds / 1e9;
  }
}
