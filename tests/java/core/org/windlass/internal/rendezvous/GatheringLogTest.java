// SPDX-License-Identifier: Apache-2.0
package org.windlass.internal.rendezvous;

import static org.assertj.core.api.Assertions.assertThat;

import java.time.Duration;
import java.util.Map;
import java.util.concurrent.CompletableFuture;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.windlass.internal.store.Failure;
import org.windlass.internal.store.LocalStore;
import org.windlass.internal.store.Log;
import org.windlass.internal.store.Meeting;
import org.windlass.internal.store.Store;

/** What the log says of ranks that are awaited, before the deadline of a start passes. */
@Timeout(60)
class GatheringLogTest {
  private static final byte[] NOTHING = {};

  private static CompletableFuture<Void> comes(Store store, int rank) {
    Duration deadline = Duration.ofSeconds(3);
    Gathering ranks = new Gathering(store, "log/", null, 4, deadline, Failure::make);
    return CompletableFuture.runAsync(
        () -> ranks.gather("arrive", Map.of(rank, NOTHING), null));
  }

  @Test
  void whoIsAwaitedIsSaidBeforeTheDeadline() throws Exception {
    Log log = new Log();
    Store store = new LocalStore(Failure::make);
    try {
      CompletableFuture<Void> third = comes(store, 2);
      store.await("log/rank/2", Meeting.LONG);
      CompletableFuture<Void> first = comes(store, 0);
      while (log.of(store.address()).isEmpty() && !first.isDone()) {
        Thread.sleep(5);
      }
      store.close();
      assertThat(first).failsWithin(Duration.ofSeconds(20));
      assertThat(third).failsWithin(Duration.ofSeconds(20));
      assertThat(log.of(store.address()))
          .singleElement()
          .asString()
          .startsWith("ranks 1, 3 of 4 had not come to " + store.address() + " so far; the start")
          .endsWith("s more");
    } finally {
      store.close();
      log.close();
    }
  }
}
