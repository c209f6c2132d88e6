// SPDX-License-Identifier: Apache-2.0
package org.windlass.bench.workload;

import java.util.function.IntUnaryOperator;
import org.windlass.Communicator;
import org.windlass.bench.data.SharedWords;
import org.windlass.bench.side.Side;
import org.windlass.error.VerificationFailedException;

/**
 * A barrier. To check it, each rank posts the number of times that it has entered, and reads the
 * others' posts as it leaves.
 */
public record BarrierWorkload(Side side, int ranks) implements Workload {
  private static final int CHECKED_CALLS = 100;

  @Override
  public RankWork open(Communicator comm) {
    int rank = comm.rank();
    Runnable barrier = side.barrier(comm);
    SharedWords posts = new SharedWords(comm, ranks);
    return new RankWork() {
      @Override
      public void call() {
        barrier.run();
      }

      @Override
      public void verify(long iteration) {
        for (int i = 0; i < CHECKED_CALLS; i++) {
          int entered = posts.peek(rank) + 1;
          posts.set(rank, entered);
          barrier.run();
          check(rank, entered, posts::peek);
        }
      }

      @Override
      public void close() {
        posts.close();
      }
    };
  }

  public void check(int rank, int entered, IntUnaryOperator posted) {
    for (int peer = 0; peer < ranks; peer++) {
      int seen = posted.applyAsInt(peer);
      if (seen < entered) {
        throw new VerificationFailedException(
            "barrier: rank " + rank + " left call " + entered + " while rank " + peer
                + " had entered " + seen);
      }
    }
  }
}
