// SPDX-License-Identifier: Apache-2.0
package org.windlass.internal.store;

import static org.assertj.core.api.Assertions.assertThat;
import static org.windlass.internal.store.Failure.assertFails;
import static org.windlass.internal.store.StoreTest.bytes;
import static org.windlass.internal.store.StoreTest.start;
import static org.windlass.internal.store.TestStore.JOB;
import static org.windlass.internal.store.TestStore.LIBRARY;
import static org.windlass.internal.store.TestStore.LONG;

import java.io.IOException;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.net.ServerSocket;
import java.net.Socket;
import java.nio.ByteBuffer;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.FutureTask;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.windlass.internal.Native;
import org.windlass.internal.store.TestStore.Kind;
import org.windlass.testing.Ports;

/** Who gets into a store behind a socket, and what those inside see when it ends. */
@Timeout(120)
class SocketStoreTest {
  private static final Duration SHORT = Duration.ofMillis(200);

  private Log log;

  @BeforeEach
  void listen() {
    log = new Log();
  }

  @AfterEach
  void listenNoMore() {
    log.close();
  }

  @Test
  void ranksGather() throws Exception {
    int ranks = 8;
    try (TestStore testStore = new TestStore(Kind.SOCKET)) {
      List<FutureTask<Integer>> all = new ArrayList<>();
      for (int rank = 0; rank < ranks; rank++) {
        int own = rank;
        all.add(start(() -> gather(testStore.join(TestStore.rank(own, ranks)), own, ranks, LONG)));
      }
      for (FutureTask<Integer> task : all) {
        assertThat(task.get()).isEqualTo(ranks * (ranks - 1) / 2);
      }
    }
  }

  /** The sum of what all ranks say. */
  static int gather(Store store, int rank, int ranks, Duration deadline) {
    assertThat(store.hold("rank/" + rank, bytes(rank), deadline)).isTrue();
    int sum = 0;
    for (int peer = 0; peer < ranks; peer++) {
      sum += store.awaitOther("rank/" + peer, null, deadline).orElseThrow()[0];
    }
    return sum;
  }

  @Test
  void whoHoldsAnotherTokenStaysOutOnBothSides() throws Exception {
    try (TestStore testStore = new TestStore(Kind.SOCKET)) {
      Token other = Token.random();
      assertFails(Native.WL_RESOURCE, () -> testStore.join(TestStore.rank(0, 1), other, LONG))
          .contains("another token", Sockets.name(testStore.server().address()), "rank 0 of 1");
      try (RawConnection stranger = new RawConnection(testStore.server().address())) {
        byte[] hello = Greeting.hello(TestStore.rank(0, 1));
        stranger.sendFrame(hello);
        byte[] challenge = stranger.frame();
        byte[] proof = testStore.token().hmac("windlass store: server", hello, challenge);
        stranger.sendFrame(ByteBuffer.allocate(1 + proof.length).put(Wire.PROOF).put(proof).array());
        assertThat(stranger.refusal()).contains("another token");
      }
      testStore.join(TestStore.rank(0, 1)).set("a", bytes(1), LONG);
    }
  }

  /** The log tells who held another token from who came with none, or broke off. */
  @Test
  void theOwnerIsToldThatTokensDiffer() throws Exception {
    Log log = new Log();
    try (TestStore testStore = new TestStore(Kind.SOCKET)) {
      InetSocketAddress address = testStore.server().address();
      Token other = Token.random();
      assertFails(Native.WL_RESOURCE, () -> testStore.join(TestStore.rank(0, 1), other, LONG));
      while (log.of(Sockets.name(address)).isEmpty()) {
        Thread.onSpinWait();
      }
      try (RawConnection stranger = new RawConnection(address)) {
        stranger.sendFrame(Greeting.hello(TestStore.rank(0, 1)));
        stranger.frame();
      }
      while (log.of(Sockets.name(address)).size() < 2) {
        Thread.onSpinWait();
      }
      List<String> told = log.of(Sockets.name(address));
      assertThat(told).hasSize(2);
      assertThat(told.get(0)).endsWith("the member holds another token than the store");
      assertThat(told.get(1)).endsWith("it left before it had shown the token");
    } finally {
      log.close();
    }
  }

  /** What one heard in one greeting is worth nothing in the next. */
  @Test
  void aProofThatWasHeardIsRefused() throws Exception {
    try (TestStore testStore = new TestStore(Kind.SOCKET)) {
      InetSocketAddress address = testStore.server().address();
      byte[] hello = Greeting.hello(TestStore.rank(0, 1));
      byte[] proof;
      try (RawConnection heard = new RawConnection(address)) {
        heard.sendFrame(hello);
        proof = Greeting.answered(hello, testStore.token(), heard.frame()).proof();
        heard.sendFrame(proof);
        assertThat(heard.frame()[0]).isEqualTo(Wire.WELCOME);
      }
      try (RawConnection replay = new RawConnection(address)) {
        replay.sendFrame(hello);
        replay.frame();
        replay.sendFrame(proof);
        assertThat(replay.refusal()).contains("another token");
      }
    }
  }

  @Test
  void aRankIsConnectedOnceAndMayComeAgain() throws Exception {
    try (TestStore testStore = new TestStore(Kind.SOCKET)) {
      SocketStore first = testStore.join(TestStore.rank(1, 4));
      assertThat(first.hold("rank/1", bytes(1), LONG)).isTrue();
      assertFails(Native.WL_MISMATCH, () -> testStore.join(TestStore.rank(1, 4)))
          .contains("rank 1 of 4 of job \"" + JOB + "\"", "connected already", "127.0.0.1:");
      testStore.join(new Member("another", 1, 8, LIBRARY)).set("b", bytes(1), LONG);
      testStore.join(Member.observer(JOB, LIBRARY)).set("c", bytes(1), LONG);
      testStore.join(Member.observer(JOB, LIBRARY));
      first.close();
      Store watcher = testStore.join();
      assertThat(watcher.awaitOther("rank/1", bytes(1), LONG)).isEmpty();
      SocketStore again = testStore.join(TestStore.rank(1, 8));
      assertThat(again.hold("rank/1", bytes(2), LONG)).isTrue();
    }
  }

  @Test
  void anotherVersionOfTheProtocolIsRefusedAndBothAreNamed() throws Exception {
    try (TestStore testStore = new TestStore(Kind.SOCKET);
        RawConnection later = new RawConnection(testStore.server().address())) {
      byte[] hello = Greeting.hello(new Member(JOB, 0, 1, "9.8\u009b.7"));
      ByteBuffer.wrap(hello).putInt(1 + Integer.BYTES, Wire.PROTOCOL + 1);
      later.sendFrame(hello);
      assertThat(later.refusal())
          .contains(
              "version 9.8?.7, store protocol " + (Wire.PROTOCOL + 1),
              "version " + LIBRARY + ", store protocol " + Wire.PROTOCOL);
    }
  }

  @Test
  void aStoreThatIsLostIsNamedToThoseWhoWaitAndThoseWhoCome() throws Exception {
    try (TestStore testStore = new TestStore(Kind.SOCKET)) {
      String address = Sockets.name(testStore.server().address());
      SocketStore store = testStore.join(TestStore.rank(0, 1));
      List<FutureTask<Void>> waits = new ArrayList<>();
      for (int i = 0; i < 4; i++) {
        String key = "absent/" + i;
        waits.add(
            start(
                () -> {
                  assertFails(Native.WL_PEER_LOST, () -> store.awaitOther(key, null, LONG).orElseThrow())
                      .contains("await " + key, "the store at " + address + " was lost");
                  return null;
                }));
      }
      Thread.sleep(50);
      testStore.server().close();
      for (FutureTask<Void> wait : waits) {
        wait.get(10, TimeUnit.SECONDS);
      }
      assertFails(Native.WL_PEER_LOST, () -> store.set("a", bytes(1), LONG))
          .contains("set a", address);
      Member rank = TestStore.rank(0, 1);
      assertFails(Native.WL_DEADLINE_EXCEEDED, () -> testStore.join(rank, testStore.token(), SHORT))
          .contains(address, "no store there");
      testStore.server().close();
    }
  }

  @Test
  void aMemberMayComeBeforeTheStore() throws Exception {
    InetSocketAddress address = ofNobody();
    Token token = Token.random();
    Member member = TestStore.rank(0, 1);
    FutureTask<SocketStore> early =
        start(() -> SocketStore.connect(address, token, member, LONG));
    Thread.sleep(100);
    assertThat(early).isNotDone();
    StoreServer.Bounds bounds = StoreServer.Bounds.defaults();
    try (StoreServer server = StoreServer.open(address, token, LIBRARY, bounds);
        SocketStore store = early.get()) {
      store.set("a", bytes(1), LONG);
      assertFails(
              Native.WL_RESOURCE,
              () -> StoreServer.open(server.address(), token, LIBRARY, bounds))
          .contains(Sockets.name(address));
    }
  }

  @Test
  void aHostMayBeAName() {
    Token token = Token.random();
    StoreServer.Bounds bounds = StoreServer.Bounds.defaults();
    InetSocketAddress any = InetSocketAddress.createUnresolved("localhost", 0);
    try (StoreServer server = StoreServer.open(any, token, LIBRARY, bounds)) {
      int port = server.address().getPort();
      InetSocketAddress named = InetSocketAddress.createUnresolved("localhost", port);
      try (SocketStore store = connect(named, token, LONG)) {
        store.set("a", bytes(1), LONG);
        assertThat(store.address()).isEqualTo("localhost:" + port);
      }
    }
  }

  @Test
  void whatIsNoStoreIsNotWaitedFor() throws Exception {
    try (ServerSocket other = new ServerSocket(0, 1, InetAddress.getLoopbackAddress())) {
      FutureTask<Void> answer =
          start(
              () -> {
                try (Socket socket = other.accept()) {
                  socket.getOutputStream().write("HTTP/1.1 400 Bad Request\r\n\r\n".getBytes());
                  socket.getInputStream().readAllBytes();
                }
                return null;
              });
      InetSocketAddress address = (InetSocketAddress) other.getLocalSocketAddress();
      assertFails(Native.WL_INVALID_ARGUMENT, () -> connect(address, Token.random(), LONG))
          .contains("not a Windlass store");
      answer.get();
    }
  }

  /** Who has not shown the token may not say more than how a start can fail. */
  @Test
  void aStrangerDoesNotChooseWhatIsThrown() throws Exception {
    try (ServerSocket stranger = new ServerSocket(0, 1, InetAddress.getLoopbackAddress())) {
      FutureTask<Void> answer =
          start(
              () -> {
                try (Socket socket = stranger.accept()) {
                  byte[] refused = RawConnection.framed(Wire.refused(Native.WL_INTERNAL, "a fault"));
                  socket.getOutputStream().write(refused);
                  socket.getInputStream().readAllBytes();
                }
                return null;
              });
      InetSocketAddress address = (InetSocketAddress) stranger.getLocalSocketAddress();
      assertFails(Native.WL_INVALID_ARGUMENT, () -> connect(address, Token.random(), LONG))
          .contains("not a Windlass store");
      answer.get();
    }
  }

  @Test
  void aSilentStoreHoldsUpNobodyPastTheDeadline() throws Exception {
    Token token = Token.random();
    try (ServerSocket silent = new ServerSocket(0, 8, InetAddress.getLoopbackAddress())) {
      InetSocketAddress address = (InetSocketAddress) silent.getLocalSocketAddress();
      long begin = System.nanoTime();
      assertFails(Native.WL_DEADLINE_EXCEEDED,
          () -> connect(address, token, SHORT)).contains("no answer");
      FutureTask<RawConnection> greeted =
          start(() -> RawConnection.server(silent, token, 2_000));
      try (SocketStore store = connect(address, token, LONG);
          RawConnection server = greeted.get()) {
        byte[] largest = new byte[Limits.VALUE];
        for (int i = 0; i < 20; i++) {
          String key = "k" + i; // sockets don't take in all of these
          Duration deadline = Duration.ofMillis(10);
          assertFails(Native.WL_DEADLINE_EXCEEDED, () -> store.set(key, largest, deadline))
              .contains("set " + key, "no answer");
        }
        assertFails(Native.WL_PEER_LOST, () -> store.awaitOther("a", null, LONG).orElseThrow()).contains("said nothing");
        assertThat(server.isOpen()).isTrue();
      }
      assertThat(System.nanoTime() - begin).isLessThan(LONG.toNanos());
    }
  }

  /** Where nobody listens. */
  private static InetSocketAddress ofNobody() throws IOException {
    return new InetSocketAddress(InetAddress.getLoopbackAddress(), Ports.free());
  }

  private static SocketStore connect(InetSocketAddress address, Token token, Duration deadline) {
    return SocketStore.connect(address, token, TestStore.rank(0, 1), deadline);
  }

  @Test
  void aMemberThatSaysNothingIsTakenForGoneAndOneThatIsIdleIsNot() throws Exception {
    StoreServer.Bounds bounds = new StoreServer.Bounds(8, 8, LONG, Duration.ofSeconds(2));
    try (TestStore testStore = new TestStore(Kind.SOCKET, bounds)) {
      Store idle = testStore.join(TestStore.rank(0, 2));
      idle.hold("idle", bytes(1), LONG);
      Store watcher = testStore.join();
      try (RawConnection hung =
          RawConnection.member(
              testStore.server().address(), testStore.token(), TestStore.rank(1, 2))) {
        byte[] key = {'h'};
        hung.send(hung.sealed(Strangers.request(Wire.HOLD, 7, "h", null, key)));
        assertThat(hung.frame()).endsWith((byte) 1);
        Optional<byte[]> gone = watcher.awaitOther("h", key, LONG);
        assertThat(gone).isEmpty();
        assertThat(hung.ended()).isTrue();
      }
      assertThat(watcher.get("idle", LONG)).isPresent();
    }
  }

  @Test
  void aConnectionHasSoManyWaitsAndNoMore() throws Exception {
    try (TestStore testStore = new TestStore(Kind.SOCKET)) {
      SocketStore store = testStore.join(TestStore.rank(0, 1));
      List<FutureTask<byte[]>> waits = new ArrayList<>();
      try (RawConnection many =
          RawConnection.member(
              testStore.server().address(), testStore.token(), Member.observer(JOB, LIBRARY))) {
        for (int id = 0; id <= Session.WAITS; id++) {
          many.send(many.sealed(Strangers.request(Wire.AWAIT, id, "k", null, null)));
        }
        ByteBuffer refusal = ByteBuffer.wrap(many.frame());
        assertThat((int) refusal.get()).isEqualTo(Native.WL_RESOURCE);
        assertThat(refusal.getInt()).isEqualTo(Session.WAITS);
        for (int i = 0; i < 8; i++) {
          waits.add(start(() -> store.awaitOther("k", null, LONG).orElseThrow()));
        }
        store.set("k", bytes(5), LONG);
        for (int id = 0; id < Session.WAITS; id++) {
          ByteBuffer reply = ByteBuffer.wrap(many.frame());
          assertThat(reply.get()).isEqualTo(Wire.DONE);
          assertThat(reply.getInt()).isEqualTo(id);
          assertThat(Wire.text(reply, Limits.KEY)).isEqualTo("k");
          assertThat(Wire.array(reply)).containsExactly(5);
        }
      }
      for (FutureTask<byte[]> wait : waits) {
        assertThat(wait.get()).containsExactly(5);
      }
    }
  }

  @Test
  void anInterruptEndsTheWayThereAndStaysSet() throws Exception {
    InetSocketAddress address = ofNobody();
    CountDownLatch begun = new CountDownLatch(1);
    FutureTask<Boolean> connect =
        new FutureTask<>(
            () -> {
              begun.countDown();
              assertFails(Native.WL_ABORTED, () -> connect(address, Token.random(), LONG))
                  .contains("interrupted");
              return Thread.currentThread().isInterrupted();
            });
    Thread thread = new Thread(connect, "member");
    thread.start();
    begun.await();
    Thread.sleep(30);
    thread.interrupt();
    assertThat(connect.get(30, TimeUnit.SECONDS)).isTrue();
  }

  @Test
  void closingLeavesNoThreadAndNoDescriptor() throws Exception {
    Open before = Open.now();
    openAndClose(20);
    before.requireNoMoreNow();
  }

  private static void openAndClose(int times) throws Exception {
    for (int i = 0; i < times; i++) {
      try (TestStore testStore = new TestStore(Kind.SOCKET)) {
        SocketStore store = testStore.join(TestStore.rank(0, 2));
        FutureTask<Void> wait =
            start(
                () -> {
                  Failure.assertFails(
                      Native.WL_PEER_LOST, () -> store.awaitOther("absent", null, LONG).orElseThrow()).isNotEmpty();
                  return null;
                });
        testStore.join(TestStore.rank(1, 2)).set("a", bytes(1), LONG);
        Token other = Token.random();
        assertFails(Native.WL_RESOURCE, () -> testStore.join(TestStore.rank(1, 2), other, LONG))
            .isNotEmpty();
        RawConnection.member(
            testStore.server().address(), testStore.token(), Member.observer(JOB, LIBRARY)).close();
        Thread.sleep(10);
        testStore.server().close();
        wait.get(30, TimeUnit.SECONDS);
      }
    }
  }

  private static RawConnection raw(TestStore testStore) throws Exception {
    return RawConnection.member(
        testStore.server().address(), testStore.token(), Member.observer("raw", TestStore.LIBRARY));
  }

  @Test
  void aHolderThatDoesNotCloseHoldsUpTheServerForTwoSeconds() throws Exception {
    try (TestStore testStore = new TestStore(Kind.SOCKET);
        RawConnection silent = raw(testStore)) {
      silent.send(silent.sealed(Strangers.request(Wire.HOLD, 7, "a", null, bytes(1))));
      testStore.join().awaitOther("a", null, LONG).orElseThrow();
      long startNs = System.nanoTime();
      testStore.server().close();
      assertThat(Duration.ofNanos(System.nanoTime() - startNs))
          .isBetween(Duration.ofSeconds(1), Duration.ofSeconds(8));
    }
  }

  private static byte[] await(int count, String... keys) {
    byte[] fields =
        Encoding.bytes(
            out -> {
              out.writeInt(count);
              for (String key : keys) {
                out.write(Wire.text(key));
                Encoding.putArray(out, null);
              }
            });
    return RawConnection.framed(Wire.body(Wire.AWAIT, 7, fields));
  }

  @Test
  void aWaitForNoKeysOrTooManyEndsTheSessionAndNothingElse() throws Exception {
    try (TestStore testStore = new TestStore(Kind.SOCKET)) {
      Store other = testStore.join();
      FutureTask<byte[]> waits = start(() -> other.awaitOther("a", null, LONG).orElseThrow());
      List<byte[]> wrong =
          List.of(
              await(0), await(-1), await(2, "a"), await(1, "a", "b"), await(2, "a", "a"),
              await(1, ""), await(5, "a", "b", "c", "d", "e"),
              await(Integer.MAX_VALUE, "a", "b", "c", "d", "e"));
      for (byte[] each : wrong) {
        try (RawConnection raw = raw(testStore)) {
          raw.send(raw.sealed(each));
          assertThat(raw.ended()).isTrue();
        }
      }
      assertThat(waits).isNotDone();
      other.set("a", bytes(1), LONG);
      assertThat(waits.get()).containsExactly(1);
    }
  }
}
