// SPDX-License-Identifier: Apache-2.0
package org.windlass.internal.rendezvous;

import static org.assertj.core.api.Assertions.assertThat;

import java.net.InetSocketAddress;
import java.time.Duration;
import org.junit.jupiter.api.Test;
import org.windlass.internal.Native;
import org.windlass.internal.store.Failure;
import org.windlass.internal.store.Member;
import org.windlass.internal.store.SocketStore;
import org.windlass.internal.store.StoreServer;
import org.windlass.internal.store.Token;

/** Communicators that are started at one address share a store, which lasts as long as one of them. */
class OwnStoreTest {
  private static final Duration LONG = Duration.ofSeconds(30);

  private static void connect(RendezvousFile.Place place, Duration limit) {
    Member member = Member.observer("test", "1");
    SocketStore.connect(place.address(), place.token(), member, limit).close();
  }

  @Test
  void whoClosesItsPartTwiceClosesNobodyElses() {
    OwnStore any = new OwnStore(new RendezvousFile.Place(StoreServer.loopback(), Token.random()), "1");
    InetSocketAddress address = any.place().address();
    any.close();
    RendezvousFile.Place place = new RendezvousFile.Place(address, Token.random());
    try (OwnStore first = new OwnStore(place, "1")) {
      // A store serves one start at a time.
      Failure.assertFails(Native.WL_RESOURCE, () -> new OwnStore(place, "1"));
      first.started();
      OwnStore second = new OwnStore(place, "1");
      assertThat(second.place().address()).isEqualTo(address);
      second.close();
      second.close();
      connect(place, LONG);
    }
    Failure.assertFails(Native.WL_DEADLINE_EXCEEDED, () -> connect(place, Duration.ofMillis(50)));
  }
}
