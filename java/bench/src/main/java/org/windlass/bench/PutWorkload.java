// SPDX-License-Identifier: Apache-2.0
package org.windlass.bench;

import java.nio.ByteBuffer;
import java.util.OptionalDouble;
import org.windlass.Communicator;
import org.windlass.DType;
import org.windlass.DistributedTensor;
import org.windlass.InvalidArgumentException;
import org.windlass.Signals;
import org.windlass.Tensor;
import org.windlass.VerificationFailedException;
import org.windlass.Window;

/**
 * Pairs of neighbours, all at once: rank 2k puts {@code bytes} into the window of rank 2k + 1 and
 * notifies it, which waits for that. A rank without a neighbour only lines up. In a stream the two
 * take turns, so that nobody puts over what has not been waited for.
 *
 * @param plain whether what is put lies in memory of the rank's own; where it goes is a window
 */
public record PutWorkload(int ranks, long bytes, DType dtype, boolean plain) implements Workload {

  public PutWorkload {
    Buffers.requireAddressable(2 * bytes);
    if (ranks < 2) {
      throw new InvalidArgumentException("--ranks: " + ranks + "; a put takes at least 2");
    }
  }

  private int pairs() {
    return ranks / 2;
  }

  @Override
  public RankWork open(Communicator comm) {
    Window window = comm.window(2 * (bytes + 64) + Signals.bytes(1, ranks));
    long count = bytes / dtype.bytes();
    Signals signals = window.signals(1);
    DistributedTensor inbox = window.tensor(dtype, count);
    Tensor own = plain ? Tensor.allocate(dtype, count) : window.tensor(dtype, count);
    return new Work(comm.rank(), window, signals, own, inbox);
  }

  private final class Work implements RankWork {
    private final int rank;
    private final int peer;
    private final Window window;
    private final Signals signals;
    private final Tensor own;
    private final DistributedTensor inbox;
    private final Pattern pattern;

    /** Puts in either direction so far. */
    private int sequence;

    Work(int rank, Window window, Signals signals, Tensor own, DistributedTensor inbox) {
      this.rank = rank;
      this.peer = rank ^ 1;
      this.window = window;
      this.signals = signals;
      this.own = own;
      this.inbox = inbox;
      this.pattern = new Pattern(rank, Buffers.bytesOf(own));
    }

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
    public void call() {
      stream(0);
    }

    @Override
    public void stream(int index) {
      if (peer == ranks) {
        return;
      }
      sequence++;
      if (sends(index)) {
        window.put(own, peer, inbox);
        signals.notify(peer, 0, sequence);
      } else {
        signals.await(peer, 0, sequence);
      }
    }

    @Override
    public void verify(long iteration) {
      if (!sends(0)) {
        PutWorkload.verify(Buffers.bytesOf(inbox), rank, (int) bytes, iteration);
      }
    }

    @Override
    public void close() {
      window.close();
      own.close();
    }
  }

  /** Checks what {@code rank} was sent: the bytes of the rank before it. */
  static void verify(ByteBuffer inbox, int rank, int bytes, long iteration) {
    int at = Pattern.mismatch(inbox, 0, bytes, rank - 1, 0, iteration);
    if (at >= 0) {
      throw new VerificationFailedException(
          "put: rank "
              + rank
              + "'s inbox differs at byte "
              + at
              + " from what rank "
              + (rank - 1)
              + " put in iteration "
              + iteration);
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
