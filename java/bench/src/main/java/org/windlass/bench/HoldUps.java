// SPDX-License-Identifier: Apache-2.0
package org.windlass.bench;

/**
 * Counts how often this machine takes a core away from a thread that only reads the clock. Causes are
 * interrupts, other threads, and the host of a virtual machine. With h hold-ups a second on each core,
 * a sample of m microseconds on two ranks meets one with probability 2 m h / 10^6.
 */
final class HoldUps {
  private static final long HELD_NS = 1_000;
  private static final long MEASURED_NS = 500_000_000;

  private HoldUps() {}

  /** Returns the hold-ups of 1 us or more a second on the caller's core. Takes half a second. */
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
