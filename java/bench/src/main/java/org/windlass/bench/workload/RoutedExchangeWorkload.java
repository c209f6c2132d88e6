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
import org.windlass.internal.Native;
import org.windlass.internal.NativeMemory;
import org.windlass.internal.Natives;
import org.windlass.internal.Structs;

/**
 * The operation of {@link DispatchCombineWorkload}, implemented with all-to-all-v. Rows are
 * permuted before and after the exchange, in both directions. The counts of rows for each expert
 * are exchanged first.
 *
 * @param plain whether tokens and sums lie in the rank's own memory; rows always lie in windows
 */
public record RoutedExchangeWorkload(ExpertTraffic traffic, boolean plain)
    implements ExpertWorkload {
  @Override
  public RankWork open(Communicator comm) {
    int ranks = traffic.ranks();
    int each = traffic.experts() / ranks;
    int[] ids = traffic.ids(comm.rank());
    int most = 0;
    int[] rowsOf = new int[ranks];
    for (int rank = 0; rank < ranks; rank++) {
      for (int id : traffic.ids(rank)) {
        most = Math.max(most, ++rowsOf[id / each]);
      }
    }
    DType dtype = traffic.dtype();
    int hidden = traffic.hidden();
    long rowBytes = hidden * (long) dtype.bytes();
    long slotBytes = traffic.slots() * rowBytes;
    long countBytes = 4L * traffic.experts();
    Buffers buffers =
        new Buffers(
            comm,
            false,
            slotBytes,
            slotBytes,
            most * rowBytes,
            most * rowBytes,
            countBytes,
            countBytes);
    Buffers ends = new Buffers(comm, plain, traffic.tokenBytes(), traffic.tokenBytes());
    Tensor tokens = ends.tensor(dtype, traffic.tokens(), hidden);
    Tensor sums = ends.tensor(dtype, traffic.tokens(), hidden);
    // Rows sent to experts, sorted by expert, then by token. The experts' answers have the same
    // order.
    Tensor sent = buffers.tensor(dtype, traffic.slots(), hidden);
    Tensor answers = buffers.tensor(dtype, traffic.slots(), hidden);
    // Rows received from ranks, sorted by rank, then by expert. The second tensor has the same
    // rows, sorted by expert.
    Tensor come = buffers.tensor(dtype, most, hidden);
    Tensor rows = buffers.tensor(dtype, most, hidden);
    Tensor counts = buffers.tensor(DType.I32, traffic.experts());
    Tensor countsOfAll = buffers.tensor(DType.I32, traffic.experts());
    ExpertTraffic.Tokens input = traffic.new Tokens(comm.rank(), tokens);
    Ints tokenOf = Ints.of(traffic.slots());
    Ints sentAt = Ints.of(traffic.slots());
    Ints sorted = Ints.of(most);
    Ints back = Ints.of(most);
    Tensor weights = Tensor.allocate(DType.F32, traffic.slots()).fill(ExpertTraffic.WEIGHT);
    int[] next = new int[traffic.experts()];
    int[] own = new int[traffic.experts()];
    int[] others = new int[traffic.experts()];
    long[] sendCounts = new long[ranks];
    return new RankWork() {
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

      /** Sorts the tokens' copies by expert, in token order, and counts elements for each rank. */
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

      /** Computes each received row's new index, and the inverse. Returns the number of rows. */
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
        Natives.call(
            (out, error) ->
                Native.wl_floor_permute(
                    to.address(), from.address(), order.address(), count, rowBytes, error));
        Reference.reachabilityFence(to);
        Reference.reachabilityFence(from);
      }

      private void weigh() {
        Natives.call(
            (out, error) ->
                Native.wl_floor_weigh(
                    sums.address(),
                    answers.address(),
                    sentAt.address(),
                    weights.address(),
                    traffic.tokens(),
                    traffic.topK(),
                    traffic.hidden(),
                    traffic.dtype().code(),
                    error));
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
    };
  }

  private record Ints(ByteBuffer memory, IntBuffer values) {
    static Ints of(int count) {
      ByteBuffer memory = Structs.allocate(Math.multiplyExact(count, Integer.BYTES));
      return new Ints(memory, memory.asIntBuffer());
    }

    long address() {
      return NativeMemory.address(memory);
    }
  }

  @Override
  public String by() {
    return "all-to-all-v";
  }
}
