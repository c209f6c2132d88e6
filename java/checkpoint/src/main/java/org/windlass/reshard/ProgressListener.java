// SPDX-License-Identifier: Apache-2.0
package org.windlass.reshard;

/**
 * Receives the progress of a run several times a second.
 *
 * <p>The listener runs on its own thread, which is never interrupted. An exception from it ends the
 * run. While the listener runs, the deadline is not checked, so the listener must return soon.
 */
@FunctionalInterface
public interface ProgressListener {
  /**
   * Called repeatedly while bytes move, and once after all bytes have moved.
   *
   * @param moved number of bytes written so far
   * @param total number of bytes to write
   */
  void progress(long moved, long total);
}
