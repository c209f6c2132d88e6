// SPDX-License-Identifier: Apache-2.0
package org.windlass.internal.store;

import static org.assertj.core.api.Assertions.assertThat;
import static org.windlass.internal.store.StoreTest.bytes;
import static org.windlass.internal.store.StoreTest.start;
import static org.windlass.internal.store.TestStore.LONG;

import java.io.IOException;
import java.net.InetSocketAddress;
import java.nio.ByteBuffer;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Random;
import java.util.concurrent.FutureTask;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.TestInstance;
import org.junit.jupiter.api.Timeout;
import org.windlass.internal.Native;
import org.windlass.internal.store.TestStore.Kind;
import org.windlass.testing.Mutation;
import org.windlass.testing.RandomSeeds;

/** Connections that mean harm, beside members who go on. */
@Timeout(300)
@TestInstance(TestInstance.Lifecycle.PER_CLASS)
class HostileConnectionsTest {
  private static final Duration SHORT = Duration.ofMillis(700);
  private static final int GARBAGE = Boolean.getBoolean("windlass.long") ? 10_000 : 2_000;
  private static final int HALF = 100;

  private Log log;
  private TestStore shared;
  private Store member;

  @BeforeAll
  void open() {
    log = new Log();
    shared = new TestStore(Kind.SOCKET);
    member = shared.join(TestStore.rank(0, 1));
  }

  @AfterAll
  void close() {
    shared.close();
    log.close();
  }

  /** Ranks gather again and again, while strangers come as fast as they can. */
  @Test
  void garbageAndHalfRequestsDoNotKeepMembersOut() throws Exception {
    int ranks = 8;
    Open before = Open.now();
    try (TestStore testStore = new TestStore(Kind.SOCKET);
        Strangers strangers =
            new Strangers(testStore.server().address(), testStore.token(), TestStore.LIBRARY)) {
      strangers.sendHalves(HALF);
      FutureTask<Void> garbage =
          start(
              () -> {
                strangers.sendGarbage(GARBAGE);
                return null;
              });
      int rounds = 0;
      while (rounds == 0 || !garbage.isDone()) {
        gather(testStore, ranks);
        rounds++;
      }
      garbage.get();
    }
    before.requireNoMoreNow();
  }

  private static void gather(TestStore testStore, int ranks) throws Exception {
    List<SocketStore> stores = new ArrayList<>();
    List<FutureTask<Integer>> all = new ArrayList<>();
    for (int rank = 0; rank < ranks; rank++) {
      int own = rank;
      all.add(
          start(
              () -> {
                SocketStore store = testStore.join(TestStore.rank(own, ranks));
                synchronized (stores) {
                  stores.add(store);
                }
                return SocketStoreTest.gather(store, own, ranks, LONG);
              }));
    }
    for (FutureTask<Integer> task : all) {
      assertThat(task.get()).isEqualTo(ranks * (ranks - 1) / 2);
    }
    stores.forEach(Store::close);
    Store watcher = testStore.join();
    while (!watcher.keys("", LONG).isEmpty()) {
      Thread.sleep(1);
    }
    watcher.close();
  }

  @Test
  void whoIsTurnedAwayIsLoggedAndAFloodIsCounted() throws Exception {
    int more = 24;
    try (TestStore testStore = new TestStore(Kind.SOCKET)) {
      String address = Sockets.name(testStore.server().address());
      for (int i = 0; i < RefusalLog.LINES + more; i++) {
        try (RawConnection stranger = new RawConnection(testStore.server().address())) {
          stranger.sendFrame(new byte[] {42});
          assertThat(stranger.ended()).isTrue();
        }
      }
      testStore.server().close();
      List<String> own = log.of(address);
      assertThat(own).hasSize(RefusalLog.LINES + 1);
      assertThat(own.get(0)).matches(".*turned 127\\.0\\.0\\.1:\\d+ away: it sent no hello");
      assertThat(own.get(RefusalLog.LINES)).contains("turned " + more + " more away");
    }
  }

  @Test
  void theOldestStrangerGoesAndNoMemberDoes() throws Exception {
    StoreServer.Bounds bounds = new StoreServer.Bounds(4, 2, LONG, LONG);
    try (TestStore testStore = new TestStore(Kind.SOCKET, bounds)) {
      Store store = testStore.join(TestStore.rank(0, 3));
      List<RawConnection> strangers = new ArrayList<>();
      for (int i = 0; i < 10; i++) {
        strangers.add(new RawConnection(testStore.server().address()));
      }
      for (int i = 0; i < 6; i++) {
        assertThat(strangers.get(i).ended()).as("stranger " + i).isTrue();
      }
      byte[] hello = Greeting.hello(TestStore.rank(1, 3));
      for (RawConnection left : strangers.subList(6, 10)) {
        left.sendFrame(hello);
        assertThat(left.frame()[0]).isEqualTo(Wire.CHALLENGE);
      }
      store.set("a", bytes(1), LONG);
      testStore.join(TestStore.rank(1, 3)).set("a", bytes(2), LONG);
      Failure.assertFails(
              Native.WL_RESOURCE, () -> testStore.join(TestStore.rank(2, 3)))
          .contains("2 members");
      strangers.forEach(RawConnection::close);
    }
  }

  @Test
  void aStrangerHasLittleTime() throws Exception {
    StoreServer.Bounds bounds = new StoreServer.Bounds(64, 8, SHORT, LONG);
    try (TestStore testStore = new TestStore(Kind.SOCKET, bounds)) {
      Store store = testStore.join(TestStore.rank(0, 3));
      byte[] hello = Greeting.hello(TestStore.rank(1, 3));
      byte[] whole = RawConnection.framed(hello);
      long begin = System.nanoTime();
      try (RawConnection silent = new RawConnection(testStore.server().address());
          RawConnection half = new RawConnection(testStore.server().address());
          RawConnection greeted = new RawConnection(testStore.server().address())) {
        half.send(Arrays.copyOf(whole, whole.length / 2));
        greeted.send(whole);
        for (RawConnection stranger : List.of(silent, half, greeted)) {
          assertThat(stranger.ended()).isTrue();
        }
      }
      assertThat(System.nanoTime() - begin).isBetween(SHORT.toNanos(), LONG.toNanos() / 2);
      store.set("a", bytes(1), LONG);
    }
  }

  /** A length is not taken at its word: nothing is made ready for what has not come. */
  @Test
  void whatAStrangerAnnouncesIsRefusedBeforeItComes() throws Exception {
    StoreServer.Bounds bounds = new StoreServer.Bounds(64, 8, LONG, LONG);
    try (TestStore testStore = new TestStore(Kind.SOCKET, bounds);
        RawConnection stranger = new RawConnection(testStore.server().address())) {
      stranger.send(ByteBuffer.allocate(4).putInt(Wire.HANDSHAKE_FRAME + 1).array());
      assertThat(stranger.ended()).isTrue();
      testStore.join().set("a", bytes(1), LONG);
    }
  }

  @RandomSeeds(value = 60, inLong = 3000)
  void mutatedGreetingsLeaveTheServerServing(long seed) throws Exception {
    Random random = new Random(seed);
    byte[] hello = Greeting.hello(TestStore.rank(0, 1));
    try (RawConnection stranger = new RawConnection(shared.server().address())) {
      boolean atOnce = random.nextBoolean();
      byte[] whole = RawConnection.framed(hello);
      byte[] proof = new byte[Integer.BYTES + 1 + Token.BYTES];
      ByteBuffer.wrap(proof).putInt(1 + Token.BYTES).put(Wire.PROOF);
      stranger.send(atOnce ? Mutation.of(whole, random) : whole);
      stranger.send(Mutation.of(proof, random));
    } catch (IOException e) {
      // Turned away in the middle of a word.
    }
    requireServing();
  }

  @RandomSeeds(value = 120, inLong = 5000)
  void mutatedRequestsOfAMemberLeaveTheServerServing(long seed) throws Exception {
    Random random = new Random(seed);
    Member observer = Member.observer("mutated", TestStore.LIBRARY);
    InetSocketAddress address = shared.server().address();
    try (RawConnection connection = RawConnection.member(address, shared.token(), observer)) {
      for (int i = 0; i < 4; i++) {
        connection.send(connection.sealed(Mutation.of(Strangers.request(random), random)));
      }
    } catch (IOException e) {
      // Turned away in the middle of a word.
    }
    requireServing();
  }

  private void requireServing() {
    byte[] served = ByteBuffer.allocate(Long.BYTES).putLong(System.nanoTime()).array();
    member.set("served", served, LONG);
    SocketStore next = shared.join(Member.observer("next", TestStore.LIBRARY));
    assertThat(next.get("served", LONG)).hasValue(served);
    next.close();
  }
}
