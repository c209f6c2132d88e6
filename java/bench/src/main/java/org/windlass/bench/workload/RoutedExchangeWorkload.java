// SPDX-License-Identifier: Apache-2.0
package org.windlass.bench.workload;

import java.lang.ref.Reference;
import java.nio.ByteBuffer;
import java.nio.IntBuffer;
import java.util.Arrays;
import org.windlass.Communicator;
import org.windlass.DType;
import org.windlass.Tensor;
import org.windlass.bench.data.Buffers;
import org.windlass.bench.data.ExpertTraffic;
import org.windlass.internal.Failures;
import org.windlass.internal.Native;
import org.windlass.internal.NativeMemory;
import org.windlass.internal.Scratch;
import org.windlass.internal.Structs;

/**
 * The operation of {@link DispatchCombineWorkload}, implemented with all-to-all-v. There is a
 * vectorised permutation before and after the exchange of rows, in both directions. The counts of
 * experts are exchanged first.
 *
 * @param plain whether tokens and sums lie in the rank's own memory; rows always lie in windows
 */
public record RoutedExchangeWorkload(ExpertTraffic traffic, boolean plain) implements ExpertWorkload {
  @Override
  public RankWork open(Communicator comm) {
    return new Work(comm);
  }

  /** Integers of a rank, shared by Java and the native side. */
  private record Ints(ByteBuffer memory, IntBuffer values) {
    static Ints of(int count) {
      ByteBuffer memory = Structs.allocate(Math.multiplyExact(count, Integer.BYTES));
      return new Ints(memory, memory.asIntBuffer());
    }

    long address() {
      return NativeMemory.address(memory);
    }
  }

  private final class Work implements RankWork {
    private final Communicator comm;
    private final int ranks = traffic.ranks();
    private final int each = traffic.experts() / traffic.ranks();
    private final int[] ids;
    private final Buffers buffers;
    private final Buffers ends;
    private final Tensor tokens;
    private final Tensor sums;

    /**
     * Rows sent to experts, sorted by expert, then by token. {@link #answers} has the same order.
     */
    private final Tensor sent;

    private final Tensor answers;

    /**
     * Rows received from ranks, sorted by rank, then by expert. {@link #rows} has them sorted by
     * expert.
     */
    private final Tensor come;

    private final Tensor rows;
    private final Tensor counts;
    private final Tensor countsOfAll;
    private final ExpertTraffic.Tokens input;
    private final Ints tokenOf;
    private final Ints sentAt;
    private final Ints sorted;
    private final Ints back;
    private final Tensor weights;
    private final int[] next = new int[traffic.experts()];
    private final int[] own = new int[traffic.experts()];
    private final int[] others;
    private final long[] sendCounts = new long[ranks];

    Work(Communicator comm) {
      this.comm = comm;
      this.ids = traffic.ids(comm.rank());
      int most = 0;
      int[] come = new int[ranks];
      for (int rank = 0; rank < ranks; rank++) {
        for (int id : traffic.ids(rank)) {
          most = Math.max(most, ++come[id / each]);
        }
      }
      long rowBytes = traffic.hidden() * (long) traffic.dtype().bytes();
      long slotBytes = traffic.slots() * rowBytes;
      buffers =
          new Buffers(
              comm,
              false,
              slotBytes,
              slotBytes,
              most * rowBytes,
              most * rowBytes,
              4L * traffic.experts(),
              4L * traffic.experts());
      ends = new Buffers(comm, plain, traffic.tokenBytes(), traffic.tokenBytes());
      tokens = ends.tensor(traffic.dtype(), traffic.tokens(), traffic.hidden());
      sums = ends.tensor(traffic.dtype(), traffic.tokens(), traffic.hidden());
      sent = buffers.tensor(traffic.dtype(), traffic.slots(), traffic.hidden());
      answers = buffers.tensor(traffic.dtype(), traffic.slots(), traffic.hidden());
      this.come = buffers.tensor(traffic.dtype(), most, traffic.hidden());
      rows = buffers.tensor(traffic.dtype(), most, traffic.hidden());
      counts = buffers.tensor(DType.I32, traffic.experts());
      countsOfAll = buffers.tensor(DType.I32, traffic.experts());
      input = traffic.new Tokens(comm.rank(), tokens);
      tokenOf = Ints.of(traffic.slots());
      sentAt = Ints.of(traffic.slots());
      sorted = Ints.of(most);
      back = Ints.of(most);
      weights = Tensor.allocate(DType.F32, traffic.slots()).fill(ExpertTraffic.WEIGHT);
      others = new int[traffic.experts()];
    }

    @Override
    public void rewrite(long iteration) {
      input.rewrite(iteration);
    }

    @Override
    public void call() {
      sortTokens();
      permute(sent, tokens, tokenOf, traffic.slots());
      counts.copyFrom(own);
      comm.allToAll(counts, countsOfAll);
      long[] received = comm.allToAllv(sent, sendCounts, come);
      int arrived = sortRows();
      permute(rows, come, sorted, arrived);

      permute(come, rows, back, arrived);
      comm.allToAllv(come, received, answers, sendCounts);
      weigh();
    }

    /** Sorts slots by expert, in the order of tokens, and counts the elements for each rank. */
    private void sortTokens() {
      Arrays.fill(own, 0);
      for (int id : ids) {
        own[id]++;
      }
      int row = 0;
      Arrays.fill(sendCounts, 0);
      for (int expert = 0; expert < own.length; expert++) {
        next[expert] = row;
        row += own[expert];
        sendCounts[expert / each] += (long) own[expert] * traffic.hidden();
      }
      for (int slot = 0; slot < ids.length; slot++) {
        int at = next[ids[slot]]++;
        tokenOf.values.put(at, slot / traffic.topK());
        sentAt.values.put(slot, at);
      }
    }

    /**
     * Computes the position of each received row among the rows of its expert, and the inverse.
     * Returns the number of received rows.
     */
    private int sortRows() {
      countsOfAll.copyTo(others);
      int row = 0;
      for (int expert = 0; expert < each; expert++) {
        for (int from = 0; from < ranks; from++) {
          next[from * each + expert] = row;
          row += others[from * each + expert];
        }
      }
      int at = 0;
      for (int i = 0; i < others.length; i++) {
        for (int k = 0; k < others[i]; k++, at++) {
          int to = next[i] + k;
          sorted.values.put(to, at);
          back.values.put(at, to);
        }
      }
      return row;
    }

    private void permute(Tensor to, Tensor from, Ints order, int count) {
      try (Scratch scratch = Scratch.take()) {
        int code =
            Native.wl_floor_permute(
                to.address(),
                from.address(),
                order.address(),
                count,
                traffic.hidden() * (long) traffic.dtype().bytes(),
                scratch.error());
        Failures.check(code, scratch);
      }
      Reference.reachabilityFence(to);
      Reference.reachabilityFence(from);
    }

    private void weigh() {
      try (Scratch scratch = Scratch.take()) {
        int code =
            Native.wl_floor_weigh(
                sums.address(),
                answers.address(),
                sentAt.address(),
                weights.address(),
                traffic.tokens(),
                traffic.topK(),
                traffic.hidden(),
                traffic.dtype().code(),
                scratch.error());
        Failures.check(code, scratch);
      }
    }

    @Override
    public void verify(long iteration) {
      input.verify(sums, iteration);
    }

    @Override
    public void close() {
      weights.close();
      buffers.close();
      ends.close();
    }
  }

  @Override
  public String by() {
    return "all-to-all-v";
  }
}
