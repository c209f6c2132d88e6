// SPDX-License-Identifier: Apache-2.0
package org.windlass.examples.spark;

import org.apache.spark.Partitioner;

/** Assigns rows to tasks by their ids, in the same way as {@code Placement.shard(0)}. */
final class RowShards extends Partitioner {
  private static final long serialVersionUID = 1;

  private final int rows;
  private final int tasks;

  RowShards(int rows, int tasks) {
    this.rows = rows;
    this.tasks = tasks;
  }

  @Override
  public int numPartitions() {
    return tasks;
  }

  @Override
  public int getPartition(Object id) {
    int most = (rows + tasks - 1) / tasks;
    return (Integer) id / most;
  }
}
