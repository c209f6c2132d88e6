// SPDX-License-Identifier: Apache-2.0
package org.windlass.link;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.catchThrowableOfType;
import static org.assertj.core.api.InstanceOfAssertFactories.LIST;
import static org.windlass.job.JobEnd.ROWS;

import java.time.Duration;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.FutureTask;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.extension.RegisterExtension;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;
import org.windlass.LocalGroup;
import org.windlass.error.AbortedException;
import org.windlass.error.WindlassException;
import org.windlass.internal.Deadline;
import org.windlass.internal.Native;
import org.windlass.job.JobEnd;
import org.windlass.job.JobThreads;
import org.windlass.job.Role;
import org.windlass.layout.DeviceMesh;

/** What ranks of two jobs are told where a job fails among its own ranks. */
@Timeout(120)
class LinkSideTest {
  /** In which ranks are told, at once, and which a rank that is not waits in vain. */
  private static final Duration TOLD = Duration.ofSeconds(10);

  @RegisterExtension private final JobThreads jobs = JobThreads.byFile();

  /** By rank of the link. */
  private final Map<Integer, WindlassException> failures = new ConcurrentHashMap<>();

  /** What a rank of the job does that fails. */
  @FunctionalInterface
  private interface Call {
    void on(JobEnd end) throws Exception;
  }

  /** The other job comes once the ranks of the one that fails know. */
  private void run(Role failing, Call call) throws Exception {
    CountDownLatch known = new CountDownLatch(2);
    CountDownLatch told = new CountDownLatch(4);
    JobThreads.end(
        job("trainer", Role.SOURCE, failing, call, known, told),
        job("inference", Role.TARGET, failing, call, known, told));
    assertThat(failures).hasSize(4);
  }

  private FutureTask<Void> job(
      String name,
      Role role,
      Role failing,
      Call call,
      CountDownLatch known,
      CountDownLatch told) {
    return jobs.start(
        name,
        2,
        job -> {
          try (JobEnd end = new JobEnd(job, role, ROWS)) {
            Call mine = role == failing ? call : LinkSideTest::move;
            if (role != failing) {
              await(known);
            }
            WindlassException failure =
                catchThrowableOfType(WindlassException.class, () -> mine.on(end));
            Thread.interrupted();
            assertThat(failure).isNotNull();
            failures.put(end.link().communicator().rank(), failure);
            if (role == failing) {
              known.countDown();
            }
            told.countDown();
            await(told);
          }
        });
  }

  private static void move(JobEnd end) {
    if (end.link().sends()) {
      end.send(1, TOLD);
    } else {
      end.receive(TOLD);
    }
  }

  @ParameterizedTest
  @CsvSource({"SOURCE, 0, 0", "SOURCE, 1, 1", "TARGET, 0, 2", "TARGET, 1, 3"})
  void aRankThatIsInterruptedIsNamedAsTheLinkCountsIt(Role role, int rank, int linked)
      throws Exception {
    run(
        role,
        end -> {
          if (end.rank() == rank) {
            Thread.currentThread().interrupt();
          }
          move(end);
        });
    failures.forEach(
        (on, failure) ->
            assertThat(failure)
                .as("on rank %d: %s", on, failure)
                .isInstanceOf(AbortedException.class)
                .hasMessageContaining("on link 'policy'")
                .hasMessageContaining("was interrupted")
                .extracting(WindlassException::faultyRanks, LIST)
                .containsExactly(linked));
  }

  @Test
  void aRankThatStaysAwayIsNamedAsTheLinkCountsIt() throws Exception {
    CountDownLatch over = new CountDownLatch(1);
    run(
        Role.TARGET,
        end -> {
          if (end.rank() == 1) {
            await(over);
            move(end);
          }
          try {
            Deadline soon = Deadline.of(Duration.ofMillis(100));
            end.link().handover().side().words(soon, Native.WL_OP_LINK_MOVE, 1);
          } finally {
            over.countDown();
          }
        });
    failures.forEach(
        (on, failure) ->
            assertThat(failure)
                .as("on rank %d: %s", on, failure)
                .isInstanceOf(AbortedException.class)
                .hasMessageContaining(
                    "rank 3 failed its job, where it is rank 1. In the numbers of its job: rank 0"
                        + " waited")
                .extracting(WindlassException::faultyRanks, LIST)
                .containsExactly(3));
  }

  /** The other rank waits 2 s beyond its deadline, or 4 s if rank 0 stays away. */
  @ParameterizedTest
  @ValueSource(ints = {0, 1})
  void aRankThatDoesNotComeToACallIsNamed(int absent) throws Exception {
    CountDownLatch over = new CountDownLatch(1);
    run(
        Role.TARGET,
        end -> {
          if (end.rank() == absent) {
            await(over);
            move(end);
          }
          try {
            end.transfer().tryReceive(Duration.ofMillis(100));
          } finally {
            over.countDown();
          }
        });
    String text =
        "rank " + (2 + absent) + " failed its job, where it is rank " + absent
            + ". In the numbers of its job: rank " + (1 - absent) + " waited";
    failures.forEach(
        (on, failure) ->
            assertThat(failure)
                .as("on rank %d: %s", on, failure)
                .isInstanceOf(AbortedException.class)
                .hasMessageContaining(text)
                .extracting(WindlassException::faultyRanks, LIST)
                .containsExactly(2 + absent));
  }

  @Test
  void aSenderThatStaysAwayIsNamedAsTheLinkCountsIt() {
    CountDownLatch over = new CountDownLatch(1);
    DeviceMesh two = DeviceMesh.of(2);
    try (LocalGroup group = LocalGroup.of(4)) {
      group.run(
          comm -> {
            try (Link link = Link.open(comm, "back", two.at(2), two)) {
              if (comm.rank() == 2) {
                Deadline soon = Deadline.of(Duration.ofMillis(100));
                WindlassException failure =
                    catchThrowableOfType(
                        WindlassException.class,
                        () -> link.senders().words(soon, Native.WL_OP_CHECK_REPLICAS, 1));
                assertThat(failure.faultyRanks()).containsExactly(3);
                over.countDown();
              }
              await(over);
              WindlassException told = link.communicator().failure().orElseThrow();
              assertThat(told)
                  .isInstanceOf(AbortedException.class)
                  .hasMessageContaining("rank 3 failed the senders, where it is rank 1. In the numbers of"
                          + " the senders: rank 0");
              assertThat(told.faultyRanks()).containsExactly(3);
              comm.barrier();
            }
          });
    }
  }

  private static void await(CountDownLatch latch) {
    try {
      assertThat(latch.await(3 * TOLD.toSeconds(), TimeUnit.SECONDS)).isTrue();
    } catch (InterruptedException e) {
      throw new AssertionError(e);
    }
  }
}
