// SPDX-License-Identifier: Apache-2.0
package org.windlass.reshard;

import java.util.List;
import java.util.Objects;
import org.windlass.DType;
import org.windlass.internal.Copies;

/**
 * Reports the results of a redistribution.
 *
 * @param tensors number of tensors that moved
 * @param defaulted number of tensors that lack a dimension which a default layout shards. The
 *     layout replicates such a tensor instead
 * @param bytesIn bytes of the tensors that were read, including replicas and Partial terms
 * @param bytesOut bytes of the tensors that were written, including replicas
 * @param sentBytes bytes in the wire dtype that target ranks took from files of other ranks
 * @param localBytes bytes in the wire dtype that target ranks took from their own files
 * @param seconds time from opening IN until OUT has its name, without the verification
 * @param casts the bytes that were read, for each pair of source and target dtype
 * @param verified whether replicas and the result were compared
 * @param copied names of IN's other files that were copied to OUT
 * @param leftOut names of IN's other files that were not copied
 * @param warnings the warnings of the run, as {@link Reshard#warnings} receives them
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
   * Counts the bytes that were read in one dtype and written in another dtype, or in the same one.
   *
   * @param from the dtype in IN
   * @param to the dtype in OUT
   * @param bytes number of bytes in the source dtype, once for each replica that was written
   */
  public record Cast(DType from, DType to, long bytes) {
    /** Throws for null. */
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

  /** Returns the rate of writing in units of 1e9 bytes a second. */
  public double gigabytesPerSecond() {
    return bytesOut / seconds / 1e9;
  }
}
