// SPDX-License-Identifier: Apache-2.0
package org.windlass.bench.sample;

import java.time.Duration;
import org.windlass.Communicator;
import org.windlass.DType;
import org.windlass.LocalGroup;
import org.windlass.Tensor;

/**
 * The ranks of this process that a sampler drives. A crew exchanges decisions and time stamps with
 * the samplers of other processes, whose ranks run the same workload. If there are no other
 * processes, the crew exchanges nothing.
 */
final class Crew {
  private final LocalGroup group;
  private final int ranks;
  private final Duration limit;

  /**
   * Makes the crew.
   *
   * @param limit longest time that the other processes wait for a decision of rank 0's process
   */
  Crew(LocalGroup group, Duration limit) {
    this.group = group;
    this.ranks = group.communicators().get(0).size();
    this.limit = limit;
  }

  private boolean isWhole() {
    return group.size() == ranks;
  }

  /**
   * Returns true if this process has rank 0. That process decides for all processes, and gets all
   * time stamps.
   */
  boolean isFirst() {
    return group.communicators().get(0).rank() == 0;
  }

  /** Returns {@code value} of rank 0's process, once all processes have called this. */
  long decided(long value) {
    if (isWhole()) {
      return value;
    }
    return group
        .call(
            comm -> {
              long[] decision = {value};
              comm.withDeadline(limit).broadcast(decision, 0);
              return decision[0];
            })
        .get(0);
  }

  /** Sends the time stamps of all ranks to the process of rank 0. The call is collective. */
  void gather(Stamps stamps) {
    if (!isWhole()) {
      group.run(comm -> gather(comm, stamps));
    }
  }

  private void gather(Communicator comm, Stamps stamps) {
    int count = stamps.iterations();
    long[] own = new long[2 * count];
    for (int i = 0; i < count; i++) {
      own[2 * i] = stamps.ready(comm.rank(), i);
      own[2 * i + 1] = stamps.leave(comm.rank(), i);
    }
    long[] all = new long[comm.rank() == 0 ? ranks * own.length : 0];
    try (Tensor in = Tensor.allocate(DType.I64, own.length).copyFrom(own);
        Tensor out = Tensor.allocate(DType.I64, all.length)) {
      comm.gather(in, out, 0);
      out.copyTo(all);
    }
    for (int at = 0; at < all.length; at += 2) {
      stamps.set(at / own.length, at % own.length / 2, all[at], all[at + 1]);
    }
  }
}
