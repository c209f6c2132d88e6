// SPDX-License-Identifier: Apache-2.0
package org.windlass.spark;

import java.util.Arrays;
import java.util.stream.Collectors;
import org.apache.spark.SparkConf;
import org.windlass.Communicator;
import org.windlass.DType;
import org.windlass.ReduceOp;
import org.windlass.Tensor;

/** What tests tell Spark. */
final class Sparks {
  static final String NOT_HERE =
      "Spark 3.5 does not start on this JDK: javax.security.auth.Subject.getSubject is gone";

  private Sparks() {}

  /** Executors have this JVM's classes and natives; Spark's own are in SPARK_HOME. */
  static SparkConf conf(String master) {
    String own =
        Arrays.stream(System.getProperty("java.class.path").split(":"))
            .filter(entry -> !entry.matches(".*/org/(apache|scala-lang)/.*"))
            .collect(Collectors.joining(":"));
    String library = System.getProperty("org.windlass.library.path");
    return new SparkConf()
        .setMaster(master)
        .setAppName("windlass-test")
        .set("spark.ui.enabled", "false")
        .set("spark.executor.memory", "512m")
        .set("spark.executor.extraClassPath", own)
        .set(
            "spark.executor.extraJavaOptions",
            "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC -XX:-UsePerfData"
                + " -Dorg.windlass.library.path="
                + library)
        .set("spark.cores.max", "4") // for which it waits
        .set("spark.scheduler.minRegisteredResourcesRatio", "1")
        // How often a barrier stage looks again for slots that an executor had that died.
        .set("spark.scheduler.barrier.maxConcurrentTasksCheck.interval", "1s")
        .set("spark.log.level", "ERROR");
  }

  static void requireSum(Communicator comm) {
    try (Tensor tensor = Tensor.allocate(DType.F64, 1000)) {
      double[] own = new double[1000];
      Arrays.fill(own, comm.rank() + 1);
      tensor.copyFrom(own);
      comm.allReduce(tensor, ReduceOp.SUM);
      double[] sum = new double[1000];
      tensor.copyTo(sum);
      double expected = comm.size() * (comm.size() + 1) / 2.0;
      if (!Arrays.stream(sum).allMatch(each -> each == expected)) {
        throw new AssertionError("sums are " + sum[0] + ", not " + expected);
      }
    }
  }
}
