// SPDX-License-Identifier: Apache-2.0
package org.windlass.spark;

import java.io.Serializable;
import java.util.Iterator;
import java.util.List;
import java.util.Objects;
import org.apache.spark.BarrierTaskContext;
import org.apache.spark.HashPartitioner;
import org.apache.spark.Partitioner;
import org.apache.spark.api.java.JavaPairRDD;
import org.apache.spark.api.java.JavaRDD;
import org.apache.spark.rdd.RDD;
import scala.Tuple2;
import scala.jdk.javaapi.CollectionConverters;
import scala.reflect.ClassTag;
import scala.reflect.ClassTag$;
import scala.runtime.AbstractFunction1;

/** Runs barrier stages from Java, for which Spark's API lacks a call. */
public final class BarrierStage {
  private BarrierStage() {}

  /**
   * The work of one task.
   *
   * @param <T> type of the partition's elements
   * @param <R> type of the task's result
   */
  @FunctionalInterface
  public interface Body<T, R> extends Serializable {
    /**
     * Runs in the task of one partition.
     *
     * @param rows the elements of the partition
     * @return result of the partition; an exception fails the task
     */
    R run(Iterator<T> rows) throws Exception;
  }

  /**
   * Runs {@code body} on all partitions of {@code rows} at the same time. The executors need a slot
   * for each partition. If one task fails, Spark runs all of them again, at most {@code
   * spark.stage.maxConsecutiveAttempts} times. Spark does this only for a barrier stage that ends
   * in a shuffle, so this stage ends in one.
   *
   * @return the results in the order of partitions; a result must be serializable
   */
  public static <T, R> List<R> call(JavaRDD<T> rows, Body<T, R> body) {
    Objects.requireNonNull(body, "body");
    ClassTag<Tuple2<Integer, R>> pair = ClassTag$.MODULE$.apply(Tuple2.class);
    RDD<Tuple2<Integer, R>> results =
        rows.rdd().barrier().mapPartitions(new Task<>(body), false, pair);
    Partitioner each = new HashPartitioner(rows.getNumPartitions());
    return JavaPairRDD.fromJavaRDD(results.toJavaRDD()).partitionBy(each).values().collect();
  }

  /** A body in the form that Spark calls. It returns the partition's number and the result. */
  private static final class Task<T, R>
      extends AbstractFunction1<
          scala.collection.Iterator<T>, scala.collection.Iterator<Tuple2<Integer, R>>>
      implements Serializable {
    private static final long serialVersionUID = 1;

    private final Body<T, R> body;

    Task(Body<T, R> body) {
      this.body = body;
    }

    @Override
    public scala.collection.Iterator<Tuple2<Integer, R>> apply(
        scala.collection.Iterator<T> rows) {
      int partition = BarrierTaskContext.get().partitionId();
      try {
        R result = body.run(CollectionConverters.asJava(rows));
        return CollectionConverters.asScala(
            List.of(new Tuple2<>(partition, result)).iterator());
      } catch (RuntimeException e) {
        throw e;
      } catch (Exception e) {
        throw new IllegalStateException(e);
      }
    }
  }
}
