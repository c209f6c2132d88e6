// SPDX-License-Identifier: Apache-2.0
package org.windlass.examples;

import org.windlass.Communicator;
import org.windlass.layout.DeviceMesh;

/**
 * The two sides of the examples that move weights. The first half of the ranks is a trainer, and
 * the others are an inference fleet. A single rank is both.
 */
record Sides(DeviceMesh trainer, DeviceMesh fleet) {
  static Sides of(int ranks) {
    int trainers = Math.max(1, ranks / 2);
    return new Sides(
        DeviceMesh.of("tp", trainers),
        DeviceMesh.of("tp", Math.max(1, ranks - trainers)).at(ranks == 1 ? 0 : trainers));
  }

  /** Returns true if this rank is in the fleet. */
  boolean infers(Communicator comm) {
    return fleet.contains(comm.rank());
  }
}
