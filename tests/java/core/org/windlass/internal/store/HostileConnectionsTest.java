// SPDX-License-Identifier: Apache-2.0
package org.windlass.internal.store;

import static org.assertj.core.api.Assertions.assertThat;
import static org.windlass.internal.store.Meeting.LONG;
import static org.windlass.internal.store.StoreTest.bytes;
import static org.windlass.internal.store.StoreTest.start;

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
import org.windlass.internal.store.Meeting.Kind;
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
  private Meeting shared;
  private Store member;

  @BeforeAll
  void open() {
    log = new Log();
    shared = new Meeting(Kind.SOCKET);
    member = shared.join(Meeting.rank(0, 1));
  }

  @AfterAll
  void close() {
    shared.close();
    log.close();
  }

  /** Ranks meet again and again, while strangers come as fast as they can. */
  @Test
  void garbageAndHalfRequestsDoNotKeepMembersFromMeeting() throws Exception {
    int ranks = 8;
    Open before = Open.now();
    try (Meeting meeting = new Meeting(Kind.SOCKET);
        Strangers strangers =
            new Strangers(meeting.server().address(), meeting.token(), Meeting.LIBRARY)) {
      strangers.sendHalves(HALF);
      FutureTask<Void> garbage =
          start(
              () -> {
                strangers.sendGarbage(GARBAGE);
                return null;
              });
      int meetings = 0;
      while (meetings == 0 || !garbage.isDone()) {
        meet(meeting, ranks);
        meetings++;
      }
      garbage.get();
    }
    before.requireNoMoreNow();
  }

  private static void meet(Meeting meeting, int ranks) throws Exception {
    List<SocketStore> stores = new ArrayList<>();
    List<FutureTask<Integer>> all = new ArrayList<>();
    for (int rank = 0; rank < ranks; rank++) {
      int own = rank;
      all.add(
          start(
              () -> {
                SocketStore store = meeting.join(Meeting.rank(own, ranks));
                synchronized (stores) {
                  stores.add(store);
                }
                return SocketStoreTest.meet(store, own, ranks, LONG);
              }));
    }
    for (FutureTask<Integer> task : all) {
      assertThat(task.get()).isEqualTo(ranks * (ranks - 1) / 2);
    }
    stores.forEach(Store::close);
    Store watcher = meeting.join();
    while (!watcher.keys("", LONG).isEmpty()) {
      Thread.sleep(1);
    }
    watcher.close();
  }

  @Test
  void whoIsTurnedAwayIsLoggedAndAFloodIsCounted() throws Exception {
    int more = 24;
    try (Meeting meeting = new Meeting(Kind.SOCKET)) {
      String address = Sockets.name(meeting.server().address());
      for (int i = 0; i < RefusalLog.LINES + more; i++) {
        try (RawConnection stranger = new RawConnection(meeting.server().address())) {
          stranger.sendFrame(new byte[] {42});
          assertThat(stranger.ended()).isTrue();
        }
      }
      meeting.server().close();
      List<String> own = log.of(address);
      assertThat(own).hasSize(RefusalLog.LINES + 1);
      assertThat(own.get(0)).matches(".*turned 127\\.0\\.0\\.1:\\d+ away: it sent no hello");
      assertThat(own.get(RefusalLog.LINES)).contains("turned " + more + " more away");
    }
  }

  @Test
  void theOldestStrangerGoesAndNoMemberDoes() throws Exception {
    StoreServer.Bounds bounds = new StoreServer.Bounds(4, 2, LONG, LONG);
    try (Meeting meeting = new Meeting(Kind.SOCKET, bounds)) {
      Store store = meeting.join(Meeting.rank(0, 3));
      List<RawConnection> strangers = new ArrayList<>();
      for (int i = 0; i < 10; i++) {
        strangers.add(new RawConnection(meeting.server().address()));
      }
      for (int i = 0; i < 6; i++) {
        assertThat(strangers.get(i).ended()).as("stranger " + i).isTrue();
      }
      byte[] hello = Greeting.hello(Meeting.rank(1, 3));
      for (RawConnection left : strangers.subList(6, 10)) {
        left.sendFrame(hello);
        assertThat(left.frame()[0]).isEqualTo(Wire.CHALLENGE);
      }
      store.set("a", bytes(1), LONG);
      meeting.join(Meeting.rank(1, 3)).set("a", bytes(2), LONG);
      Failure.assertFails(
              Native.WL_RESOURCE, () -> meeting.join(Meeting.rank(2, 3)))
          .contains("2 members");
      strangers.forEach(RawConnection::close);
    }
  }

  @Test
  void aStrangerHasLittleTime() throws Exception {
    StoreServer.Bounds bounds = new StoreServer.Bounds(64, 8, SHORT, LONG);
    try (Meeting meeting = new Meeting(Kind.SOCKET, bounds)) {
      Store store = meeting.join(Meeting.rank(0, 3));
      byte[] hello = Greeting.hello(Meeting.rank(1, 3));
      byte[] whole = RawConnection.framed(hello);
      long begin = System.nanoTime();
      try (RawConnection silent = new RawConnection(meeting.server().address());
          RawConnection half = new RawConnection(meeting.server().address());
          RawConnection greeted = new RawConnection(meeting.server().address())) {
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
    try (Meeting meeting = new Meeting(Kind.SOCKET, bounds);
        RawConnection stranger = new RawConnection(meeting.server().address())) {
      stranger.send(ByteBuffer.allocate(4).putInt(Wire.MEETING_FRAME + 1).array());
      assertThat(stranger.ended()).isTrue();
      meeting.join().set("a", bytes(1), LONG);
    }
  }

  @RandomSeeds(value = 60, inLong = 3000)
  void mutatedGreetingsLeaveTheServerServing(long seed) throws Exception {
    Random random = new Random(seed);
    byte[] hello = Greeting.hello(Meeting.rank(0, 1));
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
    Member observer = Member.observer("mutated", Meeting.LIBRARY);
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
    SocketStore next = shared.join(Member.observer("next", Meeting.LIBRARY));
    assertThat(next.get("served", LONG)).hasValue(served);
    next.close();
  }
}
