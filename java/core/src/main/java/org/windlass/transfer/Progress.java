// SPDX-License-Identifier: Apache-2.0
package org.windlass.transfer;

/**
 * Progress of a run, summed over the ranks of this process. The totals include all ranks. If some
 * ranks live in other processes, the counts end below the totals.
 *
 * @param tensors tensors whose last byte has been written
 * @param totalTensors tensors that one run writes
 * @param bytes bytes written to targets
 * @param totalBytes bytes that one run writes
 */
public record Progress(int tensors, int totalTensors, long bytes, long totalBytes) {
  /**
   * Adds each component of {@code other}. For packages of Windlass.
   *
   * @hidden
   */
  public Progress plus(Progress other) {
    return new Progress(
        tensors + other.tensors,
        totalTensors + other.totalTensors,
        bytes + other.bytes,
        totalBytes + other.totalBytes);
  }

  /** Returns a text such as {@code 12 of 291 tensors, 1048576 of 16060522496 bytes}. */
  @Override
  public String toString() {
    return tensors + " of " + totalTensors + " tensors, " + bytes + " of " + totalBytes + " bytes";
  }
}
