// SPDX-License-Identifier: Apache-2.0
package org.windlass.internal.transfer;

import java.util.List;
import java.util.stream.LongStream;
import org.windlass.internal.Steps;
import org.windlass.plan.Plan;

/**
 * The steps of one rank in a transfer, encoded as 64-bit words: the boxes that it writes ({@code
 * chunks}) and the boxes in its staging buffer ({@code stages}). They depend only on the plans, not
 * on memory addresses.
 */
public record TransferSteps(long chunkCount, long[] chunks, long stageCount, long[] stages) {
  public static TransferSteps of(List<Plan> plans, int rank) {
    Encoder encoder = new Encoder();
    if (!plans.isEmpty()) {
      Plan.schedule(plans, rank, encoder);
    }
    return new TransferSteps(
        encoder.chunkCount,
        encoder.chunks.build().toArray(),
        encoder.stageCount,
        encoder.stages.build().toArray());
  }

  long size() {
    return chunks.length + (long) stages.length;
  }

  private static final class Encoder implements Steps {
    private final LongStream.Builder chunks = LongStream.builder();
    private final LongStream.Builder stages = LongStream.builder();
    private long chunkCount;
    private long stageCount;

    @Override
    public void stage(int phase, int dtype, long[] shape, long offset, List<Integer> readers) {
      stageCount++;
      stages.add(phase).add(dtype).add(shape.length).add(offset).add(readers.size());
      TransferWords.add(stages, shape);
      readers.forEach(stages::add);
    }

    @Override
    public void write(
        int phase,
        Place target,
        long[] length,
        List<Integer> ranks,
        Place source,
        int wire,
        int op) {
      chunkCount++;
      chunks.add(phase).add(target.view()).add(wire).add(op).add(length.length).add(ranks.size());
      TransferWords.add(chunks, length);
      TransferWords.add(chunks, target.start());
      for (int rank : ranks) {
        chunks.add(rank).add(source.view());
        TransferWords.add(chunks, source.start());
      }
    }
  }
}
