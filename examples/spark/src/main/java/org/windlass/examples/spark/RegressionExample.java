// SPDX-License-Identifier: Apache-2.0
package org.windlass.examples.spark;

import java.io.PrintStream;
import java.io.Serializable;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Iterator;
import java.util.List;
import java.util.Random;
import org.apache.spark.BarrierTaskContext;
import org.apache.spark.SparkConf;
import org.apache.spark.api.java.JavaRDD;
import org.apache.spark.api.java.JavaSparkContext;
import org.windlass.DType;
import org.windlass.ReduceOp;
import org.windlass.Tensor;
import org.windlass.spark.BarrierStage;
import org.windlass.spark.SparkCommunicator;

/**
 * Fits a linear regression with an all-reduce of gradients. Its rows lie in the partitions of an
 * RDD. In each step, every task computes the gradient over its rows. All tasks add their gradients
 * and take the same step. The weights are bitwise equal to those of a plain computation.
 */
public final class RegressionExample {
  private static final int ROWS = 2_001;
  private static final int FEATURES = 8;
  private static final int STEPS = 200;
  private static final double RATE = 0.2;

  private RegressionExample() {}

  /** The features of one sample, and the value to predict from them. */
  private record Row(double[] features, double value) implements Serializable {}

  /**
   * Runs the example. The argument is the number of tasks (4). The executors need a slot for each
   * task.
   */
  public static void main(String[] args) {
    int tasks = args.length == 0 ? 4 : Integer.parseInt(args[0]);
    try (var spark = new JavaSparkContext(new SparkConf().setAppName("windlass-regression"))) {
      run(spark, tasks, System.out);
    }
  }

  static void run(JavaSparkContext spark, int tasks, PrintStream out) {
    JavaRDD<Row> rows = spark.parallelize(rows(), tasks);

    List<double[]> fitted = BarrierStage.call(rows, RegressionExample::fit);

    double[] plain = fitPlainly(rows.glom().collect());
    for (double[] weights : fitted) {
      if (!Arrays.equals(weights, plain)) {
        throw new IllegalStateException(
            Arrays.toString(weights) + " are not " + Arrays.toString(plain));
      }
    }
    for (int i = 0; i < FEATURES; i++) {
      if (Math.abs(plain[i] - truth(i)) > 0.01) {
        throw new IllegalStateException("weight " + i + " is " + plain[i] + ", not " + truth(i));
      }
    }
    out.printf(
        "regression: %d tasks, %d rows, %d steps, every weight equals the plain one%n",
        tasks, ROWS, STEPS);
  }

  /** Fits the weights in one task. */
  private static double[] fit(Iterator<Row> partition) {
    List<Row> rows = new ArrayList<>();
    partition.forEachRemaining(rows::add);
    double[] weights = new double[FEATURES];
    double[] sum = new double[FEATURES];

    try (var comm = SparkCommunicator.of(BarrierTaskContext.get());
        var gradient = Tensor.allocate(DType.F64, FEATURES)) {
      for (int step = 0; step < STEPS; step++) {
        gradient.copyFrom(gradient(rows, weights));
        comm.allReduce(gradient, ReduceOp.SUM); // adds in the order of the ranks
        gradient.copyTo(sum);
        descend(weights, sum);
      }
    }
    return weights;
  }

  /** Fits the weights on one thread. */
  private static double[] fitPlainly(List<List<Row>> partitions) {
    double[] weights = new double[FEATURES];
    for (int step = 0; step < STEPS; step++) {
      double[] sum = gradient(partitions.get(0), weights);
      for (List<Row> rows : partitions.subList(1, partitions.size())) {
        double[] next = gradient(rows, weights);
        Arrays.setAll(sum, i -> sum[i] + next[i]);
      }
      descend(weights, sum);
    }
    return weights;
  }

  /** Returns the gradient of half the squared errors of {@code rows}. */
  private static double[] gradient(List<Row> rows, double[] weights) {
    double[] gradient = new double[FEATURES];
    for (Row row : rows) {
      double error = -row.value;
      for (int i = 0; i < FEATURES; i++) {
        error += weights[i] * row.features[i];
      }
      for (int i = 0; i < FEATURES; i++) {
        gradient[i] += error * row.features[i];
      }
    }
    return gradient;
  }

  private static void descend(double[] weights, double[] gradient) {
    Arrays.setAll(weights, i -> weights[i] - RATE * gradient[i] / ROWS);
  }

  private static double truth(int feature) {
    return feature - 3.5;
  }

  private static List<Row> rows() {
    Random random = new Random(7);
    List<Row> rows = new ArrayList<>();
    for (int n = 0; n < ROWS; n++) {
      double[] features = random.doubles(FEATURES, -1, 1).toArray();
      double value = 0.01 * random.nextGaussian();
      for (int i = 0; i < FEATURES; i++) {
        value += truth(i) * features[i];
      }
      rows.add(new Row(features, value));
    }
    return rows;
  }
}
