// SPDX-License-Identifier: Apache-2.0
package org.windlass.examples.spark;

import java.io.PrintStream;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Iterator;
import java.util.List;
import org.apache.spark.BarrierTaskContext;
import org.apache.spark.SparkConf;
import org.apache.spark.api.java.JavaRDD;
import org.apache.spark.api.java.JavaSparkContext;
import org.windlass.DType;
import org.windlass.Tensor;
import org.windlass.layout.DeviceMesh;
import org.windlass.layout.Placement;
import org.windlass.layout.TensorSpec;
import org.windlass.spark.BarrierStage;
import org.windlass.spark.SparkCommunicator;
import org.windlass.transfer.TransferBuilder;
import scala.Tuple2;

/**
 * Redistributes a table between rows and columns. Its rows lie in the partitions of an RDD, several
 * in each task. Each feature is scaled to mean 0 and deviation 1, for which a task needs whole
 * columns. The table goes to columns and back to rows as one tensor, without a Spark shuffle.
 */
public final class FeatureTableExample {
  private static final int ROWS = 1_003;
  private static final int FEATURES = 10;

  private FeatureTableExample() {}

  /**
   * Runs the example. The argument is the number of tasks (4). The executors need a slot for each
   * task.
   */
  public static void main(String[] args) {
    int tasks = args.length == 0 ? 4 : Integer.parseInt(args[0]);
    try (var spark = new JavaSparkContext(new SparkConf().setAppName("windlass-feature-table"))) {
      run(spark, tasks, System.out);
    }
  }

  static void run(JavaSparkContext spark, int tasks, PrintStream out) {
    List<Integer> ids = new ArrayList<>();
    for (int id = ROWS - 1; id >= 0; id--) {
      ids.add(id);
    }
    JavaRDD<float[]> rows =
        spark
            .parallelize(ids, tasks)
            .mapToPair(id -> new Tuple2<>(id, features(id)))
            .repartitionAndSortWithinPartitions(new RowShards(ROWS, tasks))
            .values();

    List<float[]> scaled = BarrierStage.call(rows, FeatureTableExample::scale);

    int id = 0;
    float[][] plain = scaledPlainly();
    for (float[] part : scaled) {
      for (int at = 0; at < part.length; at += FEATURES) {
        if (!Arrays.equals(Arrays.copyOfRange(part, at, at + FEATURES), plain[id])) {
          throw new IllegalStateException("row " + id + " is not " + Arrays.toString(plain[id]));
        }
        id++;
      }
    }
    if (id != ROWS) {
      throw new IllegalStateException(id + " rows came back");
    }
    out.printf(
        "feature table: %d tasks, %d rows of %d features, every value equals the plain one%n",
        tasks, ROWS, FEATURES);
  }

  /** Scales one task's rows, which are stored one after the other. */
  private static float[] scale(Iterator<float[]> partition) {
    try (var comm = SparkCommunicator.of(BarrierTaskContext.get())) {
      var mesh = DeviceMesh.of("tasks", comm.size());
      var byRows =
          TensorSpec.of("table", DType.F32, mesh.layout(Placement.shard(0)), ROWS, FEATURES);
      var byColumns =
          TensorSpec.of("table", DType.F32, mesh.layout(Placement.shard(1)), ROWS, FEATURES);
      try (var rows = Tensor.allocate(DType.F32, byRows.localShape(comm.rank()));
          var columns = Tensor.allocate(DType.F32, byColumns.localShape(comm.rank()));
          var there = TransferBuilder.of(comm).add(byRows, rows, byColumns, columns).register();
          var back = TransferBuilder.of(comm).add(byColumns, columns, byRows, rows).register()) {
        float[] values = new float[(int) rows.size(0) * FEATURES];
        for (int at = 0; partition.hasNext(); at += FEATURES) {
          System.arraycopy(partition.next(), 0, values, at, FEATURES);
        }
        rows.copyFrom(values);
        there.run();
        float[] whole = new float[ROWS * (int) columns.size(1)];
        columns.copyTo(whole);
        scaleColumns(whole, (int) columns.size(1));
        columns.copyFrom(whole);
        back.run();
        rows.copyTo(values);
        return values;
      }
    }
  }

  /** Scales each column of {@code ROWS} rows of {@code width} values. */
  private static void scaleColumns(float[] values, int width) {
    for (int column = 0; column < width; column++) {
      double sum = 0;
      double squares = 0;
      for (int at = column; at < values.length; at += width) {
        sum += values[at];
        squares += (double) values[at] * values[at];
      }
      double mean = sum / ROWS;
      double deviation = Math.sqrt(squares / ROWS - mean * mean);
      for (int at = column; at < values.length; at += width) {
        values[at] = (float) ((values[at] - mean) / deviation);
      }
    }
  }

  private static float[][] scaledPlainly() {
    float[] table = new float[ROWS * FEATURES];
    for (int id = 0; id < ROWS; id++) {
      System.arraycopy(features(id), 0, table, id * FEATURES, FEATURES);
    }
    scaleColumns(table, FEATURES);
    float[][] rows = new float[ROWS][];
    Arrays.setAll(rows, id -> Arrays.copyOfRange(table, id * FEATURES, (id + 1) * FEATURES));
    return rows;
  }

  private static float[] features(int id) {
    float[] features = new float[FEATURES];
    for (int i = 0; i < FEATURES; i++) {
      features[i] = (id * 31 + i * i * 7) % (11 + i);
    }
    return features;
  }
}
