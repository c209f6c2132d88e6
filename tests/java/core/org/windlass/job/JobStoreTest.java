// SPDX-License-Identifier: Apache-2.0
package org.windlass.job;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.assertj.core.api.Assertions.catchThrowable;
import static org.windlass.job.JobEnd.ALONE;
import static org.windlass.job.JobEnd.ROWS;
import static org.windlass.job.JobEnd.SHAPE;
import static org.windlass.job.JobEnd.allocate;
import static org.windlass.job.JobEnd.part;
import static org.windlass.job.JobThreads.SOON;
import static org.windlass.job.Role.SOURCE;
import static org.windlass.job.Role.TARGET;

import java.io.IOException;
import java.net.InetSocketAddress;
import java.net.ServerSocket;
import java.time.Duration;
import java.util.Collections;
import java.util.IdentityHashMap;
import java.util.List;
import java.util.Map;
import java.util.Random;
import java.util.Set;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.extension.RegisterExtension;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;
import org.windlass.Communicator;
import org.windlass.CommunicatorOptions;
import org.windlass.LocalGroup;
import org.windlass.Tensor;
import org.windlass.error.AbortedException;
import org.windlass.error.ClosedException;
import org.windlass.error.DeadlineExceededException;
import org.windlass.internal.Deadline;
import org.windlass.internal.rendezvous.Presence;
import org.windlass.internal.store.Store;
import org.windlass.internal.store.Token;
import org.windlass.internal.transfer.StepsMemo;
import org.windlass.link.Link;
import org.windlass.link.LinkedJobs;
import org.windlass.testing.RandomSeeds;

/** Jobs whose store, or whose deadline, lets them down: what goes on, and what ends when. */
@Timeout(180)
class JobStoreTest {
  /** Beyond the time that a test may take. */
  private static final Duration FOREVER = Duration.ofMinutes(10);

  @RegisterExtension private final JobThreads jobs = JobThreads.atServer();

  /** In the server's place, it says nothing to anybody. */
  private ServerSocket mute;

  @AfterEach
  void close() throws IOException {
    if (mute != null) {
      mute.close();
    }
  }

  /** While no job looks for it. */
  private void hang() throws IOException {
    InetSocketAddress address = jobs.server().address();
    jobs.server().close();
    mute = new ServerSocket(address.getPort(), 50, address.getAddress());
  }

  @Test
  void aDeadlineThatHasPassedCostsAJobNothing() throws Exception {
    Duration none = Duration.ofNanos(1);
    JobThreads.Body body =
        job -> {
          Role role = job.name().equals("trainer") ? SOURCE : TARGET;
          for (int i = 0; i < 3; i++) {
            assertThatThrownBy(() -> job.connect("policy", role, none))
                .isInstanceOf(DeadlineExceededException.class);
          }
          if (role == SOURCE) {
            try (Followers followers = job.followers("another", builder -> {})) {
              assertThat(followers.send(1, none)).isEmpty();
              assertThatThrownBy(() -> followers.await(1, none))
                  .isInstanceOf(DeadlineExceededException.class);
            }
          }
          JobEnd.moveOne(job, role, ROWS);
        };
    JobThreads.end(jobs.start("trainer", 2, body), jobs.start("inference", 2, body));
  }

  @Test
  void theVariableIsNamedWhereNoStoreIsAndHowLongThatWas() {
    Map<String, String> environment =
        Map.of(
            "WINDLASS_LINK_RENDEZVOUS", "192.0.2.1:7000",
            "WINDLASS_TOKEN", Token.random().digits());
    CommunicatorOptions options = CommunicatorOptions.defaults();
    Duration deadline = Duration.ofMillis(5500); // longer than one attempt
    try (var group = LocalGroup.of(1)) {
      Communicator alone = group.communicators().get(0);
      assertThatThrownBy(() -> Job.of("alone", alone, options, environment, deadline))
          .isInstanceOf(DeadlineExceededException.class)
          .hasMessageContaining("no store for 5.")
          .hasMessageContaining("where WINDLASS_LINK_RENDEZVOUS has jobs connect")
          .hasMessageContaining("192.0.2.1:7000");
    }
  }

  @Test
  void aStoreThatHangsStopsNoSend() throws Exception {
    CountDownLatch linked = new CountDownLatch(3); // two ranks and one
    CountDownLatch hung = new CountDownLatch(1);
    int versions = 5;
    var source =
        jobs.start(
            "trainer",
            2,
            job -> {
              int rank = job.communicator().rank();
              Tensor own = allocate(ROWS, rank);
              try (Followers followers =
                  job.followers("policy", builder -> builder.add("w", SHAPE, own, ROWS))) {
                followers.await(1, SOON);
                linked.countDown();
                hung.await();
                Set<Object> answers = Collections.newSetFromMap(new IdentityHashMap<>());
                for (long version = 1; version <= versions; version++) {
                  own.copyFrom(part(ROWS, rank, version));
                  // A send that waited for the store would have no time left for the version.
                  List<Follower> now = followers.send(version, SOON);
                  assertThat(now.get(0).version()).as("%s", now).hasValue(version);
                  answers.add(followers.searchFailure().orElseThrow());
                }
                if (rank == 0) {
                  // Sends that follow do not ask the store again, but repeat what was found.
                  assertThat(answers).hasSizeLessThan(versions);
                }
              }
            });
    var target =
        jobs.start(
            "inference",
            1,
            job -> {
              try (JobEnd end = new JobEnd(job, TARGET, ALONE)) {
                linked.countDown();
                for (long version = 1; version <= versions; version++) {
                  assertThat(end.receive(SOON)).isEqualTo(version);
                }
              }
            });
    assertThat(linked.await(60, TimeUnit.SECONDS)).isTrue();
    hang();
    hung.countDown();
    JobThreads.end(source, target);
  }

  @Test
  void closingAJobEndsItsConnectAtAStoreThatHangs() throws Exception {
    CountDownLatch there = new CountDownLatch(1);
    CountDownLatch hung = new CountDownLatch(1);
    var alone =
        jobs.start(
            "inference",
            1,
            job -> {
              there.countDown();
              hung.await();
              CompletableFuture<Throwable> connects =
                  CompletableFuture.supplyAsync(
                      () -> catchThrowable(() -> job.connect("policy", TARGET, SOON)),
                      connecting -> new Thread(connecting, "connects").start());
              Thread.sleep(500);
              assertThat(connects).isNotDone();
              job.close();
              assertThat(connects.get(10, TimeUnit.SECONDS)).isInstanceOf(ClosedException.class);
            });
    there.await();
    hang();
    hung.countDown();
    JobThreads.end(alone);
  }

  /** As a target, as a source, and as a source of several. */
  @ParameterizedTest
  @ValueSource(strings = {"target", "source", "followers"})
  void aConnectThatWaitsGoesOnWhereItsStoreIsLost(String waits) throws Exception {
    CountDownLatch waiting = new CountDownLatch(1);
    JobThreads.Body source =
        job -> {
          waiting.countDown();
          int rank = job.communicator().rank();
          Tensor own = allocate(ROWS, rank).copyFrom(part(ROWS, rank, 1));
          if (waits.equals("followers")) {
            try (Followers followers =
                job.followers("policy", builder -> builder.add("w", SHAPE, own, ROWS))) {
              followers.await(1, SOON);
              followers.send(1, SOON);
            }
          } else {
            JobEnd.moveOne(job, SOURCE, ROWS);
          }
        };
    JobThreads.Body target =
        job -> {
          waiting.countDown();
          JobEnd.moveOne(job, TARGET, ROWS);
        };
    boolean isTarget = waits.equals("target");
    var first = jobs.start("first", 2, isTarget ? target : source);
    waiting.await();
    Thread.sleep(300); // so that it waits, as a rule
    jobs.server().close();
    Thread.sleep(300); // so that it has noticed, as a rule
    var second = jobs.start("second", 2, isTarget ? source : target);
    JobThreads.end(first, second);
  }

  /** It goes as the ranks of both have matched, and are about to come together. */
  @RandomSeeds(value = 5, inLong = 50)
  void aConnectGoesOnWhereItsStoreIsLostAtAnyMoment(long seed) throws Exception {
    Random random = new Random(seed);
    var source = jobs.start("trainer", 2, job -> JobEnd.moveOne(job, SOURCE, ROWS));
    var target = jobs.start("inference", 2, job -> JobEnd.moveOne(job, TARGET, ROWS));
    Thread.sleep(random.nextInt(60));
    jobs.server().close();
    JobThreads.end(source, target);
  }

  @Test
  void whatFollowsAMatchKeepsToTheDeadline() throws Exception {
    CountDownLatch over = new CountDownLatch(1);
    // Whoever waits for the communicator's own deadline waits longer than the test may take.
    CommunicatorOptions patient = CommunicatorOptions.defaults().withDeadline(FOREVER);
    try (LocalGroup group = LocalGroup.of(2, patient)) {
      group.run(
          comm -> {
            Communicator both = comm.split(0, comm.rank());
            Communicator side = comm.split(comm.rank(), 0);
            if (comm.rank() == 1) {
              over.await();
              side.close();
              both.close();
              return;
            }
            Deadline until = Deadline.of(Duration.ofMillis(300));
            StepsMemo memo = new StepsMemo();
            LinkedJobs jobs = new LinkedJobs("", 1, false, null, null);
            assertThatThrownBy(() -> Link.between("policy", jobs, both, side, memo, until))
                .isInstanceOf(DeadlineExceededException.class);
            over.countDown();
          });
    }
  }

  /** The other one would wait until its deadline for what is said no more. */
  @Test
  void allAreToldWhereRank0IsInterruptedAsItAwaitsTheEndOfAKey() throws Exception {
    CountDownLatch there = new CountDownLatch(2);
    Thread[] rank0 = new Thread[1];
    Presence theirs = new Presence("somebody", new byte[] {1});
    try (Store standing = jobs.store();
        LocalGroup group = LocalGroup.of(2)) {
      standing.set(theirs.key(), theirs.value(), SOON);
      var ranks =
          CompletableFuture.runAsync(
              () ->
                  group.run(
                      comm -> {
                        Deadline until = Deadline.of(FOREVER);
                        try (JobRanks own = new JobRanks("alone", comm, until);
                            JobStore store =
                                new JobStore("alone", own, jobs.withToken(jobs.token()))) {
                          own.testOnRank0(until, () -> store.reach(until) != null);
                          if (comm.rank() == 0) {
                            rank0[0] = Thread.currentThread();
                          }
                          there.countDown();
                          assertThatThrownBy(
                                  () ->
                                      own.testOnRank0(
                                          until, () -> store.hasGivenUp(theirs, until)))
                              .isInstanceOf(AbortedException.class)
                              .hasMessageContaining("was interrupted");
                        }
                      }),
              run -> new Thread(run, "group").start());
      there.await();
      Thread.sleep(300); // so that rank 0 waits at the store, as a rule
      rank0[0].interrupt();
      ranks.get(2 * SOON.toSeconds(), TimeUnit.SECONDS);
    }
  }

  @Test
  void removingAKeyDoesNothingWhereThereIsNoStore() throws Exception {
    var alone =
        jobs.start(
            "inference",
            1,
            job -> {
              try (JobRanks own =
                      new JobRanks("alone", job.communicator(), Deadline.of(SOON));
                  JobStore none = new JobStore("alone", own, jobs.withToken(jobs.token()))) {
                assertThat(none.store()).isEmpty();
                none.remove(new Presence("somebody", new byte[] {1}));
              }
            });
    JobThreads.end(alone);
  }
}
