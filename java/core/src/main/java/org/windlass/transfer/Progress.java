// SPDX-License-Identifier: Apache-2.0
package org.windlass.transfer;

/**
 * Progress of a run of a transfer. {@code tensors} and {@code bytes} count the data that the ranks
 * of this process have received. The totals include all ranks. So if some ranks are in other
 * processes, the counts never reach the totals.
 *
 * @param tensors number of tensors whose last byte has been written
 * @param totalTensors number of tensors that one run writes
 * @param bytes number of bytes written to targets
 * @param totalBytes number of bytes that one run writes
 */
public record Progress(int tensors, int totalTensors, long bytes, long totalBytes) {
  /**
   * Returns the sum of this and {@code other}, component by component. For packages of Windlass.
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
