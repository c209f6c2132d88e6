// SPDX-License-Identifier: Apache-2.0
package org.windlass.spark;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.time.Duration;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.CountDownLatch;
import org.apache.spark.BarrierTaskContext;
import org.apache.spark.api.java.JavaRDD;
import org.apache.spark.api.java.JavaSparkContext;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.condition.EnabledForJreRange;
import org.junit.jupiter.api.condition.JRE;
import org.windlass.Communicator;
import org.windlass.CommunicatorOptions;
import org.windlass.error.AbortedException;
import org.windlass.error.ClosedException;
import org.windlass.error.DeadlineExceededException;
import org.windlass.error.MismatchException;
import org.windlass.error.WindlassException;

/** Barrier stages whose tasks are threads of this JVM. */
@Timeout(120)
@EnabledForJreRange(max = JRE.JAVA_22, disabledReason = Sparks.NOT_HERE)
class LocalTasksTest {
  private static final int TASKS = 4;
  private static final Duration LONG = Duration.ofSeconds(30);
  private static final Duration SHORT = Duration.ofSeconds(3);

  private static JavaSparkContext spark;

  /** By rank, of the first attempt of a stage. */
  private static final Map<Integer, Throwable> FAILURES = new ConcurrentHashMap<>();

  private static final Map<Integer, Communicator> MADE = new ConcurrentHashMap<>();
  private static volatile CountDownLatch comes;

  @BeforeAll
  static void start() {
    spark = new JavaSparkContext(Sparks.conf("local[" + TASKS + "]"));
  }

  @AfterAll
  static void stop() {
    spark.stop();
  }

  @BeforeEach
  void forget() {
    FAILURES.clear();
    MADE.clear();
    comes = new CountDownLatch(1);
  }

  private static JavaRDD<Integer> rows() {
    return spark.parallelize(List.of(0, 1, 2, 3), TASKS);
  }

  @Test
  void tasksStartAsOftenAsTheyLike() {
    List<Integer> ranks =
        BarrierStage.call(
            rows(),
            rows -> {
              int rank = -1;
              for (int i = 0; i < 2; i++) {
                Communicator comm = SparkCommunicator.of(BarrierTaskContext.get());
                Sparks.requireSum(comm);
                rank = comm.rank();
              }
              assertThat(rows.next()).isEqualTo(rank); // of its own partition
              return rank;
            });
    assertThat(ranks).containsExactly(0, 1, 2, 3);
  }

  @Test
  void aCommunicatorIsClosedWithItsTask() {
    BarrierStage.call(
        rows(),
        rows -> {
          Communicator comm = SparkCommunicator.of(BarrierTaskContext.get());
          MADE.put(comm.rank(), comm);
          comm.barrier();
          return 0;
        });
    assertThat(MADE).hasSize(TASKS);
    for (Communicator comm : MADE.values()) {
      assertThatThrownBy(comm::barrier).isInstanceOf(ClosedException.class);
    }
  }

  /** Keeps what the first attempt fails of. */
  private static void kept(int rank, Throwable failure) {
    if (BarrierTaskContext.get().stageAttemptNumber() == 0) {
      FAILURES.put(rank, failure);
    }
  }

  @Test
  void aTaskThatFailsEndsAllAndTheNextAttemptStartsAgain() {
    List<Integer> attempts =
        BarrierStage.call(
            rows(),
            rows -> {
              BarrierTaskContext task = BarrierTaskContext.get();
              Communicator comm = SparkCommunicator.of(task);
              Communicator half = comm.split(0, 0);
              if (task.stageAttemptNumber() == 0 && comm.rank() == 2) {
                comes.await();
                throw new IllegalStateException("the disk is full");
              }
              comes.countDown();
              try {
                if (task.stageAttemptNumber() == 0 && comm.rank() % 2 == 1) {
                  half.barrier(); // some wait in what was split from it
                }
                comm.barrier();
                half.barrier();
              } catch (WindlassException e) {
                kept(comm.rank(), e);
                throw e;
              }
              return task.stageAttemptNumber();
            });
    assertThat(attempts).containsExactly(1, 1, 1, 1);
    assertThat(FAILURES).hasSize(TASKS - 1);
    for (Throwable failure : FAILURES.values()) {
      assertThat(failure)
          .isInstanceOf(AbortedException.class)
          .hasMessageContaining("task 2 of stage ")
          .hasMessageContaining(".0 failed: java.lang.IllegalStateException: the disk is full");
    }
  }

  @Test
  void aTaskThatDoesNotComeIsMissedInTime() throws Exception {
    List<Integer> attempts =
        BarrierStage.call(
            rows(),
            rows -> {
              BarrierTaskContext task = BarrierTaskContext.get();
              if (task.stageAttemptNumber() == 0 && task.partitionId() == 1) {
                comes.await();
                throw new IllegalStateException("it was late");
              }
              try (Communicator comm =
                  SparkCommunicator.of(task, CommunicatorOptions.defaults(), SHORT)) {
                comm.barrier();
                return task.stageAttemptNumber();
              } catch (WindlassException e) {
                kept(task.partitionId(), e);
                throw e;
              } finally {
                comes.countDown();
              }
            });
    assertThat(attempts).containsExactly(1, 1, 1, 1);
    assertThat(FAILURES)
        .hasSizeBetween(1, TASKS - 1)
        .doesNotContainKey(1); // Spark ends tasks of a stage that has failed
    for (Throwable failure : FAILURES.values()) {
      assertThat(failure)
          .isInstanceOf(DeadlineExceededException.class)
          .hasMessageContaining("some of 4 ranks had not reached step arrive")
          .hasMessageContaining("not all tasks of stage ");
    }
    awaitNoThreadOfStarts();
  }

  private static void awaitNoThreadOfStarts() throws InterruptedException {
    long start = System.nanoTime();
    while (Thread.getAllStackTraces().keySet().stream()
        .anyMatch(thread -> thread.getName().startsWith("windlass-start-of-task"))) {
      assertThat(System.nanoTime() - start).as("threads left").isLessThan(LONG.toNanos());
      Thread.sleep(50);
    }
  }

  @Test
  void anAllGatherOfTheTasksOwnInBetweenIsTold() {
    BarrierStage.call(
        rows(),
        rows -> {
          BarrierTaskContext task = BarrierTaskContext.get();
          boolean isFirst = task.stageAttemptNumber() == 0;
          if (isFirst && task.partitionId() == 3) {
            task.allGather("a word of its own");
            // Where it succeeds as the others fail, Spark may leave it out of the next attempt.
            throw new IllegalStateException("it fails as the others do");
          }
          try {
            SparkCommunicator.of(task);
          } catch (WindlassException e) {
            kept(task.partitionId(), e);
            throw e;
          }
          return 0;
        });
    assertThat(FAILURES).isNotEmpty().doesNotContainKey(3);
    for (Throwable failure : FAILURES.values()) {
      assertThat(failure)
          .isInstanceOf(MismatchException.class)
          .hasMessageContaining("what rank 3 says at the start can't be read")
          .hasMessageContaining("make the same call on all ranks");
    }
  }

  @Test
  void nullsAreRefused() {
    assertThatThrownBy(() -> SparkCommunicator.of(null)).isInstanceOf(NullPointerException.class);
    assertThatThrownBy(() -> BarrierStage.call(rows(), null))
        .isInstanceOf(NullPointerException.class);
  }
}
