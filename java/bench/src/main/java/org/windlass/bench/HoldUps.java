// SPDX-License-Identifier: Apache-2.0
package org.windlass.bench;

/**
 * How often this machine takes a core from a thread that does nothing but read the clock: interrupts,
 * other threads, and the host of a virtual machine. An operation that takes m microseconds on two
 * ranks, each on a core of its own, meets one in a share of 2 m times this, in millionths.
 */
final class HoldUps {
  private static final long HELD_NS = 1_000;
  private static final long MEASURED_NS = 500_000_000;

  private HoldUps() {}

  /** Hold-ups of 1 us or more a second on the caller's core. Takes half a second. */
  static long perSecond() {
    long start = System.nanoTime();
    long before = start;
    long heldUp = 0;
    while (before - start < MEASURED_NS) {
      long now = System.nanoTime();
      if (now - before >= HELD_NS) {
        heldUp++;
      }
      before = now;
    }
    return heldUp * 1_000_000_000 / MEASURED_NS;
  }
}
