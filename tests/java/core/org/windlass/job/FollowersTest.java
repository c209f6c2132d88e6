// SPDX-License-Identifier: Apache-2.0
package org.windlass.job;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.windlass.job.JobEnd.ALONE;
import static org.windlass.job.JobEnd.COLUMNS;
import static org.windlass.job.JobEnd.ROWS;
import static org.windlass.job.JobEnd.SHAPE;
import static org.windlass.job.JobEnd.allocate;
import static org.windlass.job.JobEnd.part;
import static org.windlass.job.JobThreads.SOON;
import static org.windlass.job.Role.TARGET;

import java.time.Duration;
import java.util.List;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.atomic.AtomicInteger;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.extension.RegisterExtension;
import org.windlass.Tensor;
import org.windlass.error.AbortedException;
import org.windlass.error.DeadlineExceededException;
import org.windlass.error.InvalidArgumentException;
import org.windlass.error.MismatchException;
import org.windlass.internal.rendezvous.LinkSearch;
import org.windlass.internal.store.StoreServer;

/** Jobs that follow one, here threads of one JVM, and how each of them stands. */
@Timeout(180)
class FollowersTest {
  private static final Duration MOMENT = Duration.ofSeconds(2);

  @RegisterExtension private final JobThreads jobs = JobThreads.byFile();

  @Test
  void eachFollowerHasItsOwnPace() throws Exception {
    CountDownLatch behind = new CountDownLatch(1);
    CountDownLatch caughtUp = new CountDownLatch(1);
    CountDownLatch missed = new CountDownLatch(1);
    var source =
        jobs.start(
            "trainer",
            2,
            job -> {
              int rank = job.communicator().rank();
              Tensor own = allocate(ROWS, rank);
              try (Followers followers =
                  job.followers("policy", builder -> builder.add("w", SHAPE, own, ROWS))) {
                assertThat(followers.await(2, SOON)).extracting(Follower::job).containsExactly(
                    "fast", "slow");
                for (long version = 1; version <= 3; version++) {
                  own.copyFrom(part(ROWS, rank, version));
                  List<Follower> now = followers.send(version, MOMENT);
                  assertThat(now.get(0).version()).as("%s", now).hasValue(version);
                  assertThat(now.get(0).lag()).isZero();
                  assertThat(now.get(1).version()).as("%s", now).isEmpty();
                  assertThat(now.get(1).lag()).isEqualTo(version);
                }
                job.communicator().barrier();
                behind.countDown();
                own.copyFrom(part(ROWS, rank, 4));
                List<Follower> now = followers.send(4, SOON);
                assertThat(now).allMatch(each -> each.lag() == 0).hasSize(2);
                assertThatThrownBy(() -> followers.send(4, SOON))
                    .isInstanceOf(InvalidArgumentException.class);
                job.communicator().barrier();
                caughtUp.countDown();
                // One has gone, and costs the other nothing.
                own.copyFrom(part(ROWS, rank, 5));
                now = followers.send(5, SOON);
                assertThat(now.get(0).version()).hasValue(5);
                assertThat(now.get(1).lost()).as("%s", now).isPresent();
                // It comes again.
                job.communicator().barrier();
                missed.countDown();
                now = followers.await(2, SOON);
                assertThat(now.get(1).lost()).isEmpty();
                own.copyFrom(part(ROWS, rank, 6));
                now = followers.send(6, SOON);
                assertThat(now).allMatch(each -> each.lag() == 0);
              }
            });
    var fast =
        jobs.start(
            "fast",
            3,
            job -> {
              try (JobEnd end = new JobEnd(job, TARGET, COLUMNS)) {
                for (long version = 1; version <= 6; version++) {
                  assertThat(end.receive(SOON)).isEqualTo(version);
                }
              }
            });
    var slow =
        jobs.start(
            "slow",
            1,
            job -> {
              try (JobEnd end = new JobEnd(job, TARGET, ALONE)) {
                behind.await();
                assertThat(end.receive(SOON)).isEqualTo(4); // the newest
                caughtUp.await();
              }
              missed.await();
              try (JobEnd end = new JobEnd(job, TARGET, ALONE)) {
                assertThat(end.receive(SOON)).isEqualTo(6);
              }
            });
    JobThreads.end(source, fast, slow);
  }

  @Test
  void anotherJobThatStaysTheSourceOfTheLinkEndsIt() throws Exception {
    CountDownLatch isSource = new CountDownLatch(1);
    CountDownLatch isRefused = new CountDownLatch(1);
    var first =
        jobs.start(
            "trainer",
            1,
            job -> {
              try (Followers followers = job.followers("policy", builder -> {})) {
                followers.send(1, SOON);
                isSource.countDown();
                isRefused.await();
              }
            });
    var second =
        jobs.start(
            "another",
            2,
            job -> {
              isSource.await();
              Duration patience = Duration.ofMillis(100);
              // As if the store let go at once of a job that has ended.
              Duration beyond = patience.minus(StoreServer.Bounds.defaults().silence());
              job.connector.holders = new LinkSearch.Holders(patience, beyond);
              try (Followers followers = job.followers("policy", builder -> {})) {
                assertThatThrownBy(
                        () -> {
                          for (long version = 1; ; version++) {
                            followers.send(version, SOON);
                          }
                        })
                    .isInstanceOf(MismatchException.class)
                    .hasMessageContaining("another sends it already: job 'trainer' (1 rank");
              }
              job.communicator().barrier();
              isRefused.countDown();
            });
    JobThreads.end(first, second);
  }

  @Test
  void aFollowerThatHasGoneIsNotCounted() throws Exception {
    CountDownLatch linked = new CountDownLatch(2);
    CountDownLatch gone = new CountDownLatch(1);
    CountDownLatch noticed = new CountDownLatch(2);
    CountDownLatch back = new CountDownLatch(2);
    var source =
        jobs.start(
            "trainer",
            2,
            job -> {
              Tensor own = allocate(ROWS, job.communicator().rank());
              try (Followers followers =
                  job.followers("policy", builder -> builder.add("w", SHAPE, own, ROWS))) {
                followers.await(1, SOON);
                linked.countDown();
                gone.await();
                assertThatThrownBy(() -> followers.await(1, MOMENT))
                    .isInstanceOf(DeadlineExceededException.class)
                    .hasMessageContaining("await of 1 followers of link 'policy'")
                    .hasMessageContaining("inference: lost (");
                assertThat(followers.now()).hasToString("[inference: lost (rank 2 has left)]");
                noticed.countDown();
                assertThat(followers.await(1, SOON).get(0).lost()).isEmpty();
                back.countDown();
              }
            });
    var target =
        jobs.start(
            "inference",
            1,
            job -> {
              JobEnd end = new JobEnd(job, TARGET, ALONE);
              linked.await();
              end.close();
              gone.countDown();
              noticed.await();
              end = new JobEnd(job, TARGET, ALONE);
              back.await();
              end.close();
            });
    JobThreads.end(source, target);
  }

  /** One rank of the source can't bind what one follower is to get. */
  @Test
  void aBindingThatFailsCostsThatFollowerAlone() throws Exception {
    AtomicInteger calls = new AtomicInteger();
    CountDownLatch there = new CountDownLatch(2);
    var source =
        jobs.start(
            "trainer",
            2,
            job -> {
              int rank = job.communicator().rank();
              Tensor own = allocate(ROWS, rank);
              there.await();
              Thread.sleep(300); // so that both wait to be linked
              try (Followers followers =
                  job.followers(
                      "policy",
                      builder -> {
                        if (rank == 1 && calls.getAndIncrement() == 0) {
                          throw new IllegalStateException("not this one");
                        }
                        builder.add("w", SHAPE, own, ROWS);
                      })) {
                List<Follower> now = followers.send(1, Duration.ofSeconds(10));
                assertThat(now).hasSize(2);
                assertThat(now.get(0).toString())
                    .startsWith("a: lost (")
                    .doesNotMatch(".*on link .*on link .*")
                    .endsWith("java.lang.IllegalStateException: not this one)");
                assertThat(now.get(0).lost().orElseThrow())
                    .isInstanceOf(AbortedException.class)
                    .hasMessageContaining("not this one");
                assertThat(now.get(1).version()).as("%s", now).hasValue(1);
                followers.await(2, SOON);
                own.copyFrom(part(ROWS, rank, 2));
                assertThat(followers.send(2, SOON)).allMatch(each -> each.lag() == 0);
              }
            });
    JobThreads.Body body =
        job -> {
          there.countDown();
          if (job.name().equals("a")) {
            assertThatThrownBy(() -> new JobEnd(job, TARGET, ALONE))
                .isInstanceOf(AbortedException.class)
                .hasMessageContaining("not this one");
          }
          try (JobEnd end = new JobEnd(job, TARGET, ALONE)) {
            if (job.name().equals("b")) {
              assertThat(end.transfer().receive(SOON)).isEqualTo(1);
            }
            assertThat(end.receive(SOON)).isEqualTo(2);
          }
        };
    JobThreads.end(source, jobs.start("a", 1, body), jobs.start("b", 1, body));
  }

  /** As a link that is looked at in vain it would go on without a word. */
  @Test
  void aSendThatIsAnotherCallOnAnotherRankIsRefused() throws Exception {
    var source =
        jobs.start(
            "trainer",
            2,
            job -> {
              String linkName = job.communicator().rank() == 0 ? "policy" : "critic";
              try (Followers followers = job.followers(linkName, builder -> {})) {
                assertThatThrownBy(() -> followers.send(1, SOON))
                    .isInstanceOf(MismatchException.class)
                    .hasMessageContaining("rank 0 of job 'trainer' calls look for followers of link"
                        + " 'policy', rank 1 of job 'trainer' calls look for followers of link"
                        + " 'critic'");
                assertThat(followers.searchFailure()).isEmpty();
              }
            });
    JobThreads.end(source);
  }
}
