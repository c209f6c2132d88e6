// SPDX-License-Identifier: Apache-2.0
package org.windlass.bench.workload;

import java.nio.ByteBuffer;
import java.util.OptionalDouble;
import org.windlass.Communicator;
import org.windlass.DType;
import org.windlass.bench.data.Buffers;
import org.windlass.bench.data.Floor;
import org.windlass.bench.data.Pattern;
import org.windlass.error.InvalidArgumentException;
import org.windlass.error.VerificationFailedException;

/**
 * Puts between pairs of neighbours, all at the same time. Rank 2k puts {@code bytes} bytes into the
 * window of rank 2k + 1 and notifies it, and rank 2k + 1 waits for the notification. A rank without
 * a neighbour does nothing. In a stream, the two ranks put in turn, so that no put overwrites bytes
 * that the receiver has not waited for yet.
 *
 * @param plain whether the sent tensor lies in the rank's own memory; the target is always a window
 */
public record PutWorkload(int ranks, long bytes, DType dtype, boolean plain) implements Workload {

  public PutWorkload {
    Buffers.requireAddressable("--bytes", 2 * bytes);
    if (ranks < 2) {
      throw new InvalidArgumentException("--ranks: " + ranks + "; a put takes at least 2");
    }
  }

  private int pairs() {
    return ranks / 2;
  }

  @Override
  public RankWork open(Communicator comm) {
    return new OneSidedWork(comm, bytes, dtype, plain) {
      private final int peer = rank ^ 1;
      private final Pattern pattern = new Pattern(rank, Buffers.bytesOf(own));

      /** Number of puts so far, in both directions. */
      private int sequence;

      private boolean sends(int index) {
        return rank % 2 == index % 2;
      }

      @Override
      public void rewrite(long iteration) {
        if (sends(0)) {
          pattern.rewrite(iteration);
        }
      }

      @Override
      public void stream(int index) {
        if (peer == ranks) {
          return;
        }
        sequence++;
        if (sends(index)) {
          window.put(own, peer, reached);
          signals.notify(peer, 0, sequence);
        } else {
          signals.await(peer, 0, sequence);
        }
      }

      @Override
      public void verify(long iteration) {
        if (!sends(0)) {
          PutWorkload.verify(Buffers.bytesOf(reached), rank, (int) bytes, iteration);
        }
      }
    };
  }

  public static void verify(ByteBuffer inbox, int rank, int bytes, long iteration) {
    int at = Pattern.mismatch(inbox, 0, bytes, rank - 1, 0, iteration);
    if (at >= 0) {
      throw new VerificationFailedException(
          "put: rank " + rank + "'s inbox differs at byte " + at + " from what rank " + (rank - 1)
              + " put in iteration " + iteration);
    }
  }

  @Override
  public long receivedBytes() {
    return bytes;
  }

  @Override
  public OptionalDouble floorMicros(int iterations) {
    return OptionalDouble.of(Floor.copyMicros(pairs() * bytes, dtype, dtype, iterations));
  }
}
