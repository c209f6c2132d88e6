// SPDX-License-Identifier: Apache-2.0
package org.windlass.examples.jobs;

import java.util.List;
import org.windlass.Tensor;
import org.windlass.job.Job;
import org.windlass.layout.DeviceMesh;
import org.windlass.layout.Layout;
import org.windlass.layout.Placement;
import org.windlass.layout.Region;

/** The model that the jobs share: of each layer the weights of a version, and what they answer. */
final class SyncedModel {
  static final int LAYERS = 4;
  private static final long WIDTH = 48;
  static final long[] SHAPE = {WIDTH, WIDTH};

  private SyncedModel() {}

  static String name(int layer) {
    return "layer" + layer + ".weight";
  }

  /** A weight cut along a dimension among all ranks of a job: by its rows, or its columns. */
  static Layout layout(Job job, int dim) {
    return DeviceMesh.of("tp", job.communicator().size()).layout(Placement.shard(dim));
  }

  private static long weight(int layer, long row, long column, long version) {
    return Math.floorMod(31 * row + 17 * column + 7 * layer, 11) - 5 + version * (1 + row % 3);
  }

  /** A version's weights of a region of a layer. */
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

  /** The answer of those rows of each layer that a rank has: their sum, weighed. */
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

  /** What the whole model answers in a version; millions, so that no two versions answer alike. */
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
