// SPDX-License-Identifier: Apache-2.0
package org.windlass.internal.transfer;

import java.util.List;
import org.windlass.internal.Steps;
import org.windlass.plan.Plan;

/**
 * The boxes that one rank stages and writes in a transfer, encoded as words. They depend only on
 * the plans, not on memory addresses.
 */
public final class TransferSteps implements Steps {
  private final Words chunks = new Words();
  private final Words stages = new Words();
  private long chunkCount;
  private long stageCount;

  private TransferSteps() {}

  /** Returns the steps of {@code rank} in one transfer of {@code plans}. */
  public static TransferSteps of(List<Plan> plans, int rank) {
    TransferSteps steps = new TransferSteps();
    if (!plans.isEmpty()) {
      Plan.schedule(plans, rank, steps);
    }
    return steps;
  }

  public Words chunks() {
    return chunks;
  }

  public Words stages() {
    return stages;
  }

  public long chunkCount() {
    return chunkCount;
  }

  public long stageCount() {
    return stageCount;
  }

  @Override
  public void stage(int phase, int dtype, long[] shape, long offset, List<Integer> readers) {
    stageCount++;
    stages.add(phase);
    stages.add(dtype);
    stages.add(shape.length);
    stages.add(offset);
    stages.add(readers.size());
    stages.add(shape);
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
    chunks.add(phase);
    chunks.add(target.view());
    chunks.add(wire);
    chunks.add(op);
    chunks.add(length.length);
    chunks.add(ranks.size());
    chunks.add(length);
    chunks.add(target.start());
    for (int rank : ranks) {
      chunks.add(rank);
      chunks.add(source.view());
      chunks.add(source.start());
    }
  }
}
