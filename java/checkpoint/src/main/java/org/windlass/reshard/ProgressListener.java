// SPDX-License-Identifier: Apache-2.0
package org.windlass.reshard;

/**
 * A listener that hears how far a move is, several times a second, on a thread of its own, which
 * nobody interrupts. What it throws ends the move. While it runs nobody looks whether bytes move:
 * it shall return soon.
 */
@FunctionalInterface
public interface ProgressListener {
  /**
   * Called while bytes move, and once when all have.
   *
   * @param moved bytes written so far
   * @param total bytes to write
   */
  void progress(long moved, long total);
}
