// SPDX-License-Identifier: Apache-2.0
package org.windlass.job;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.windlass.job.JobEnd.ROWS;
import static org.windlass.job.JobThreads.SOON;
import static org.windlass.job.Role.SOURCE;
import static org.windlass.job.Role.TARGET;

import java.nio.ByteBuffer;
import java.time.Duration;
import java.util.List;
import java.util.Map;
import java.util.UUID;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.FutureTask;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.extension.RegisterExtension;
import org.windlass.error.DeadlineExceededException;
import org.windlass.error.MismatchException;
import org.windlass.internal.Deadline;
import org.windlass.internal.rendezvous.Announcement;
import org.windlass.internal.rendezvous.Host;
import org.windlass.internal.rendezvous.LinkSearch;
import org.windlass.internal.rendezvous.Start;
import org.windlass.internal.rendezvous.StoreAllGather;
import org.windlass.internal.store.Store;

/** Jobs that have found one another, of which one gives up before they have come together. */
@Timeout(120)
class AbandonedConnectTest {
  private static final Duration MOMENT = Duration.ofMillis(300);
  private static final String TARGETS = "link/policy/target/";
  private static final Start.Config GHOSTS = new Start.Config(0, 0, 0, SOON.toNanos(), false);

  @RegisterExtension private final JobThreads jobs = JobThreads.atServer();

  private final CountDownLatch hasFailed = new CountDownLatch(2);
  private final CountDownLatch mayConnect = new CountDownLatch(1);

  /** A job whose first connect finds nobody, and whose second begins once it may. */
  private FutureTask<Void> late(String name, Role role) {
    return jobs.start(
        name,
        2,
        job -> {
          assertThatThrownBy(() -> job.connect("policy", role, Duration.ofSeconds(1)))
              .isInstanceOf(DeadlineExceededException.class);
          hasFailed.countDown();
          mayConnect.await();
          JobEnd.moveOne(job, role, ROWS);
        });
  }

  private FutureTask<Void> prompt(String name, Role role) {
    return jobs.start(name, 2, job -> JobEnd.moveOne(job, role, ROWS));
  }

  @Test
  void aSourceThenConnectsToTheTargetThatComes() throws Exception {
    try (Store store = jobs.store()) {
      FutureTask<Void> target = late("inference", TARGET);
      byte[] open = store.awaitOther(TARGETS + "inference", null, SOON).orElseThrow();
      hasFailed.await();

      // Another, which is answered, and has given up by then.
      store.set(TARGETS + "ghost", open, SOON);
      FutureTask<Void> source = prompt("trainer", SOURCE);
      byte[] answered = store.awaitOther(TARGETS + "ghost", open, SOON).orElseThrow();
      assertThat(store.compareAndSet(TARGETS + "ghost", answered, null, SOON)).isTrue();
      mayConnect.countDown();
      JobThreads.end(source, target);
    }
  }

  @Test
  void aTargetThenConnectsToTheSourceThatComes() throws Exception {
    try (Store store = jobs.store()) {
      FutureTask<Void> source = late("trainer", SOURCE);
      byte[] said = store.awaitOther("link/policy/source", null, SOON).orElseThrow();
      hasFailed.await();

      // It is answered in the source's name, for a rendezvous that has nobody any more.
      FutureTask<Void> target = prompt("inference", TARGET);
      byte[] open = store.awaitOther(TARGETS + "inference", null, SOON).orElseThrow();
      byte[] answered =
          ByteBuffer.allocate(open.length + said.length).put(open).put(said).putLong(0, 7).array();
      assertThat(store.compareAndSet(TARGETS + "inference", open, answered, SOON)).isTrue();
      assertThat(store.awaitOther(TARGETS + "inference", answered, SOON))
          .matches(next -> next.isEmpty() || ByteBuffer.wrap(next.get()).equals(ByteBuffer.wrap(open)));
      mayConnect.countDown();
      JobThreads.end(source, target);
    }
  }

  /** A job of three ranks of which the last never comes, as far as a test takes it. */
  private static LinkSearch ghost(Store store) {
    Announcement said =
        new Announcement(
            JobConnector.versions(),
            "ghost",
            UUID.randomUUID().toString(),
            ProcessHandle.current().pid(),
            3,
            "",
            GHOSTS,
            false);
    Deadline until = Deadline.of(SOON);
    return new LinkSearch(store, "policy", said, until, new LinkSearch.Holders());
  }

  /** As a rank of that job. */
  private static void join(Store store, LinkSearch.Match match, int rank, Duration most) {
    Start.join(
        new StoreAllGather(store, match.name(), 5, match.theirs()),
        List.of(rank),
        5,
        GHOSTS,
        Host.of(Map.of()),
        most);
  }

  /** Rank 0 comes, and so do the target's ranks. */
  private static FutureTask<Void> opened(Store store, LinkSearch.Match match) throws Exception {
    FutureTask<Void> opener =
        new FutureTask<>(
            () -> assertThatThrownBy(() -> join(store, match, 0, SOON)).isNotNull(), null);
    new Thread(opener, "ghost").start();
    Thread.sleep(MOMENT.toMillis());
    return opener;
  }

  /** A rank's deadline passes in a start that is open. */
  private static void pass(Store store, LinkSearch.Match match, int rank) {
    assertThatThrownBy(() -> join(store, match, rank, Duration.ofMillis(1)))
        .isInstanceOf(DeadlineExceededException.class);
  }

  @Test
  void aTargetOutlivesTheDeadlineOfASource() throws Exception {
    FutureTask<Void> target = prompt("inference", TARGET);
    try (Store store = jobs.store()) {
      LinkSearch.Match match = ghost(store).source(null);
      FutureTask<Void> opener = opened(store, match);
      pass(store, match, 1);
      LinkSearch.remove(store, match.own());
      opener.get();
    }
    JobThreads.end(prompt("trainer", SOURCE), target);
  }

  @Test
  void aTargetOutlivesTheDeathOfASource() throws Exception {
    FutureTask<Void> target = prompt("inference", TARGET);
    FutureTask<Void> opener;
    try (Store store = jobs.store()) {
      opener = opened(store, ghost(store).source(null));
    }
    opener.get();
    JobThreads.end(prompt("trainer", SOURCE), target);
  }

  @Test
  void aSourceOutlivesTheDeadlineOfATarget() throws Exception {
    FutureTask<Void> source = prompt("trainer", SOURCE);
    try (Store store = jobs.store()) {
      LinkSearch.Match match = ghost(store).target();
      Thread.sleep(MOMENT.toMillis());
      pass(store, match, 2);
      LinkSearch.remove(store, match.own());
    }
    JobThreads.end(prompt("inference", TARGET), source);
  }

  @Test
  void whatConcernsBothFailsOnAllRanksOfBoth() throws Exception {
    FutureTask<Void> target =
        jobs.start(
            "inference",
            3,
            job ->
                assertThatThrownBy(() -> job.connect("policy", TARGET, SOON))
                    .isInstanceOf(MismatchException.class)
                    .hasMessageContaining("one of 5"));
    try (Store store = jobs.store()) {
      LinkSearch.Match match = ghost(store).source(null);
      assertThatThrownBy(() -> join(store, match, 0, SOON)).isNotNull();
    }
    JobThreads.end(target);
  }
}
