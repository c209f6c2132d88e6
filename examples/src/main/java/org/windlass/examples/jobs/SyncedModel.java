// SPDX-License-Identifier: Apache-2.0
package org.windlass.examples.jobs;

import java.util.List;
import org.windlass.Tensor;
import org.windlass.job.Job;
import org.windlass.layout.DeviceMesh;
import org.windlass.layout.Layout;
import org.windlass.layout.Placement;
import org.windlass.layout.Region;

/**
 * The model that the jobs share: the weights of each layer in a version, and the expected answers.
 */
final class SyncedModel {
  static final int LAYERS = 4;
  private static final long WIDTH = 48;
  static final long[] SHAPE = {WIDTH, WIDTH};

  private SyncedModel() {}

  static String name(int layer) {
    return "layer" + layer + ".weight";
  }

  /**
   * Returns the layout of a weight that is cut along a dimension, rows or columns, among all ranks
   * of a job.
   */
  static Layout layout(Job job, int dim) {
    return DeviceMesh.of("tp", job.communicator().size()).layout(Placement.shard(dim));
  }

  private static long weight(int layer, long row, long column, long version) {
    return Math.floorMod(31 * row + 17 * column + 7 * layer, 11) - 5 + version * (1 + row % 3);
  }

  /** Returns the weights of a region of a layer in a version. */
  static float[] weights(int layer, Region region, long version) {
    Region.Interval rows = region.intervals(0).get(0);
    Region.Interval columns = region.intervals(1).get(0);
    float[] weights = new float[(int) region.numel()];
    int next = 0;
    for (long row = rows.start(); row < rows.end(); row++) {
      for (long column = columns.start(); column < columns.end(); column++) {
        weights[next++] = weight(layer, row, column, version);
      }
    }
    return weights;
  }

  /** Returns the answer of a rank's rows of each layer: their weighted sum. */
  static long answer(List<Tensor> rows) {
    long answer = 0;
    for (int layer = 0; layer < LAYERS; layer++) {
      float[] values = new float[(int) rows.get(layer).numel()];
      rows.get(layer).copyTo(values);
      for (int i = 0; i < values.length; i++) {
        answer += (layer + 1) * (i % WIDTH + 1) * (long) values[i];
      }
    }
    return answer;
  }

  /**
   * Returns the answer of the whole model in a version. It is in the millions, so that versions
   * differ.
   */
  static long golden(long version) {
    long answer = 0;
    for (int layer = 0; layer < LAYERS; layer++) {
      for (long row = 0; row < WIDTH; row++) {
        for (long column = 0; column < WIDTH; column++) {
          answer += (layer + 1) * (column + 1) * weight(layer, row, column, version);
        }
      }
    }
    return answer;
  }
}
