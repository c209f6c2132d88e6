// SPDX-License-Identifier: Apache-2.0
package org.windlass.examples.spark;

import static org.assertj.core.api.Assertions.assertThat;

import java.io.ByteArrayOutputStream;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import org.apache.spark.SparkConf;
import org.apache.spark.api.java.JavaSparkContext;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.condition.EnabledForJreRange;
import org.junit.jupiter.api.condition.JRE;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** The examples, each task a thread of this JVM; {@code tests/scripts} runs them in executors. */
@Timeout(120)
@EnabledForJreRange(
    max = JRE.JAVA_22,
    disabledReason =
        "Spark 3.5 does not start on this JDK: javax.security.auth.Subject.getSubject is gone")
class SparkExamplesTest {
  private static final int MOST_TASKS = 7;

  private static JavaSparkContext spark;

  @BeforeAll
  static void start() {
    spark =
        new JavaSparkContext(
            new SparkConf()
                .setMaster("local[" + MOST_TASKS + "]")
                .setAppName("windlass-test")
                .set("spark.ui.enabled", "false")
                .set("spark.log.level", "ERROR"));
  }

  @AfterAll
  static void stop() {
    spark.stop();
  }

  private interface Example {
    void run(JavaSparkContext spark, int tasks, PrintStream out);
  }

  private static String said(Example example, int tasks) {
    ByteArrayOutputStream out = new ByteArrayOutputStream();
    example.run(spark, tasks, new PrintStream(out, true, StandardCharsets.UTF_8));
    return out.toString(StandardCharsets.UTF_8);
  }

  @ParameterizedTest
  @ValueSource(ints = {1, 2, 3, MOST_TASKS})
  void regressionEqualsThePlainOne(int tasks) {
    assertThat(said(RegressionExample::run, tasks))
        .startsWith("regression: " + tasks + " tasks, ")
        .contains("every weight equals the plain one");
  }

  @ParameterizedTest
  @ValueSource(ints = {1, 2, 3, MOST_TASKS})
  void theTableEqualsThePlainOne(int tasks) {
    assertThat(said(FeatureTableExample::run, tasks))
        .startsWith("feature table: " + tasks + " tasks, ")
        .contains("every value equals the plain one");
  }
}
