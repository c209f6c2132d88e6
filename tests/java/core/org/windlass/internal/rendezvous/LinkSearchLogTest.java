// SPDX-License-Identifier: Apache-2.0
package org.windlass.internal.rendezvous;

import static org.assertj.core.api.Assertions.assertThat;

import java.time.Duration;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.windlass.internal.Deadline;
import org.windlass.internal.Native;
import org.windlass.internal.store.Failure;
import org.windlass.internal.store.Log;
import org.windlass.internal.store.Store;
import org.windlass.internal.store.StoreServer;
import org.windlass.internal.store.TestStore;

/** What becomes of a job whose place in a link another job holds. */
@Timeout(60)
class LinkSearchLogTest {
  private static final Start.Config OPTIONS = new Start.Config(1, 0, 0, 1, false);
  private static final Duration TELLS = Duration.ofMillis(20);

  private final Log log = new Log();
  private final TestStore testStore = new TestStore(TestStore.Kind.SOCKET);
  private final Store first = testStore.join();
  private final Store second = testStore.join();

  @AfterEach
  void close() {
    testStore.close();
    log.close();
  }

  /** Limits that end so soon, as if a store let go at once of a job that has ended. */
  private static LinkSearch.Holders holders(Duration ends) {
    Duration beyond = ends.minus(StoreServer.Bounds.defaults().silence());
    return new LinkSearch.Holders(TELLS, beyond);
  }

  private static LinkSearch search(Store store, String job, String instance, Duration ends) {
    LinkSearch.Holders holders = holders(ends);
    return search(store, job, instance, TestStore.LONG, holders);
  }

  private static LinkSearch search(
      Store store, String job, String instance, Duration deadline, LinkSearch.Holders holders) {
    Announcement own = new Announcement("1", job, instance, 17, 2, "", OPTIONS, false);
    return new LinkSearch(store, "policy", own, Deadline.of(deadline), holders);
  }

  /** Until the log has said so of that job. */
  private void awaitLine(String job, String why) throws InterruptedException {
    String start = "job '" + job + "', link 'policy': ";
    while (log.of(start).isEmpty()) {
      Thread.sleep(5);
    }
    assertThat(log.of(start))
        .singleElement()
        .asString()
        .contains(why)
        .contains("; it waits for that one to end, ")
        .endsWith(" at most");
  }

  @Test
  void anotherJobThatWouldSendToIsRefusedLongBeforeItsDeadline() throws Exception {
    search(first, "trainer", "1", TestStore.LONG).open();
    CompletableFuture<Void> other =
        CompletableFuture.runAsync(
            () ->
                Failure.assertFails(
                        Native.WL_MISMATCH,
                        () -> search(second, "another", "2", Duration.ofMillis(200)).open())
                    .contains("link 'policy': another sends it already: job 'trainer' (2 ranks")
                    .contains("a link name has one source"));
    awaitLine("another", "another sends it already: job 'trainer' (2 ranks");
    other.get(20, TimeUnit.SECONDS);
  }

  /** As a source does that looks for followers with each version. */
  @Test
  void manyShortLooksFindThatAnotherJobStays() throws Exception {
    search(first, "trainer", "1", TestStore.LONG).open();
    Duration ends = Duration.ofSeconds(1);
    LinkSearch.Holders holders = holders(ends);
    Failure.assertFails(
            Native.WL_DEADLINE_EXCEEDED, () ->
                search(second, "another", "2", TELLS, holders).open())
        .contains("another sends it already: job 'trainer' (2 ranks");
    Thread.sleep(TELLS.toMillis());
    Failure.assertFails(
        Native.WL_DEADLINE_EXCEEDED, () -> search(second, "another", "2", TELLS, holders).open());
    awaitLine("another", "a link name has one source");
    Thread.sleep(ends.toMillis());
    Failure.assertFails(
            Native.WL_MISMATCH, () -> search(second, "another", "2", TELLS, holders).open())
        .contains("another sends it already: job 'trainer' (2 ranks");
    first.close();
    search(second, "another", "2", TestStore.LONG, holders).open();
  }

  /** As where a job is started anew before it has been noticed that it had ended. */
  @Test
  void aJobWaitsForTheOneThatItFollows() throws Exception {
    search(first, "trainer", "1", TestStore.LONG).open();
    CompletableFuture<Void> anew =
        CompletableFuture.runAsync(() -> search(second, "trainer", "2", TELLS).open());
    awaitLine("trainer", "another sends it already: job 'trainer' (2 ranks");
    assertThat(anew).isNotDone();
    first.close();
    anew.get(20, TimeUnit.SECONDS);
  }

  @Test
  void aTargetWaitsForTheOneOfItsName() throws Exception {
    CompletableFuture<LinkSearch.Match> there =
        CompletableFuture.supplyAsync(
            () -> search(first, "fleet", "1", TestStore.LONG).target());
    second.awaitOther("link/policy/target/fleet", null, TestStore.LONG).orElseThrow();
    CompletableFuture<LinkSearch.Match> anew =
        CompletableFuture.supplyAsync(
            () -> search(second, "fleet", "2", TELLS).target());
    awaitLine("fleet", "job 'fleet' (2 ranks, rank 0 is process 17), which has the same name as this job");
    assertThat(anew).isNotDone();
    first.close();
    assertThat(there).failsWithin(Duration.ofSeconds(20));
    LinkSearch.Match match = search(testStore.join(), "trainer", "3", TELLS).source(null);
    assertThat(anew.get(20, TimeUnit.SECONDS).name()).isEqualTo(match.name());
  }
}
