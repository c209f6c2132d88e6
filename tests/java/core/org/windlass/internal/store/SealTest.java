// SPDX-License-Identifier: Apache-2.0
package org.windlass.internal.store;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.windlass.internal.store.Failure.assertFails;
import static org.windlass.internal.store.StoreTest.bytes;
import static org.windlass.internal.store.StoreTest.start;
import static org.windlass.internal.store.TestStore.LONG;

import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.net.ServerSocket;
import java.nio.ByteBuffer;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.FutureTask;
import java.util.function.BiFunction;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.TestInstance;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;
import org.junit.jupiter.params.provider.ValueSource;
import org.windlass.error.WindlassException;
import org.windlass.internal.Native;
import org.windlass.internal.store.TamperingRelay.Direction;
import org.windlass.internal.store.TestStore.Kind;

/** Someone between a member and its store, who has no token, changes nothing that either believes. */
@Timeout(300)
@TestInstance(TestInstance.Lifecycle.PER_CLASS)
class SealTest {
  private static final Duration MOMENT = Duration.ofSeconds(1);
  private static final Duration FEW_SECONDS = Duration.ofSeconds(3);

  private Log log;
  private TestStore testStore;
  private Store honest;

  @BeforeAll
  void open() {
    log = new Log();
    testStore = new TestStore(Kind.SOCKET);
    honest = testStore.join(TestStore.rank(0, 1));
    honest.set("kept", bytes(1), LONG);
  }

  @AfterAll
  void close() {
    testStore.close();
    log.close();
  }

  private InetSocketAddress address() {
    return testStore.server().address();
  }

  private RawConnection join() throws Exception {
    Member observer = Member.observer("raw", TestStore.LIBRARY);
    return RawConnection.member(address(), testStore.token(), observer);
  }

  /** A request of each kind. Each of them would change the value of the key, or its absence. */
  private static List<byte[]> requests() {
    List<byte[]> all = new ArrayList<>();
    for (byte kind = Wire.SET; kind <= Wire.LEAVE; kind++) {
      if (kind == 19) {
        continue; // no request has this number
      }
      all.add(Strangers.request(kind, 7, "kept", bytes(1), bytes(2)));
    }
    return all;
  }

  /** More than the longest frame, for what a changed length announces. */
  private static byte[] filler() {
    return new byte[Integer.BYTES + Wire.FRAME + Seal.BYTES];
  }

  private void requireUntouched() {
    assertThat(honest.get("kept", LONG)).hasValue(bytes(1));
  }

  @Test
  void aRequestIsRefusedWhicheverBitOfItChanges() throws Exception {
    for (byte[] request : requests()) {
      for (int at = 0; at < request.length + Seal.BYTES; at++) {
        try (RawConnection member = join()) {
          byte[] sealed = member.sealed(request);
          sealed[at] ^= (byte) (1 << at % 8);
          member.send(sealed);
          if (at < Integer.BYTES) {
            member.sendIfOpen(filler());
          }
          assertThat(member.ended()).as("kind %d, byte %d", request[Integer.BYTES], at).isTrue();
        }
      }
      requireUntouched();
    }
  }

  /** How two frames go over the wire, from what each is by itself. */
  private void refuses(String how, BiFunction<byte[], byte[], byte[][]> sent) throws Exception {
    for (byte[] request : requests().subList(0, 1)) {
      try (RawConnection member = join()) {
        byte[] ping = RawConnection.framed(Wire.body(Wire.PING, 7));
        for (byte[] frame : sent.apply(member.sealed(ping), member.sealed(request))) {
          member.send(frame);
        }
        assertThat(member.ended()).as(how).isTrue();
      }
      requireUntouched();
    }
  }

  @Test
  void framesCountAndHaveAnOrder() throws Exception {
    refuses("dropped", (ping, set) -> new byte[][] {set});
    refuses("moved", (ping, set) -> new byte[][] {set, ping});
    refuses("repeated", (ping, set) -> new byte[][] {ping, ping, set});
  }

  @Test
  void aMemberIsToldWhyItsSessionEnds() throws Exception {
    try (RawConnection member = join()) {
      byte[] sealed = member.sealed(requests().get(0));
      sealed[Integer.BYTES] ^= 1;
      member.send(sealed);
      ByteBuffer told = ByteBuffer.wrap(member.frame());
      assertThat((int) told.get()).isEqualTo(Native.WL_INVALID_ARGUMENT);
      assertThat(told.getInt()).isEqualTo(Wire.NO_CALL);
      assertThat(Wire.text(told, Wire.REFUSAL)).contains("does not fit its seal");
      assertThat(member.ended()).isTrue();
    }
    assertThat(log.of(Sockets.name(address())))
        .anyMatch(line -> line.contains("job \"raw\"") && line.contains("does not fit its seal"));
  }

  @Test
  void whatTheOtherSideSaidIsNotTakenBack() throws Exception {
    try (RawConnection member = join()) {
      byte[] get = requests().get(1);
      member.send(member.sealed(get));
      member.send(member.sealedFrame());
      assertThat(member.ended()).isTrue();
    }
    requireUntouched();
  }

  /** A relay passes the greeting on, as a stranger who listens on the port first can. */
  @Test
  void aRelayOfTheGreetingGetsNothing() throws Exception {
    try (ServerSocket relay = new ServerSocket(0, 1, InetAddress.getLoopbackAddress())) {
      InetSocketAddress there = (InetSocketAddress) relay.getLocalSocketAddress();
      FutureTask<Void> victim =
          start(
              () -> {
                Member member = Member.observer("victim", TestStore.LIBRARY);
                assertFails(
                        Native.WL_DEADLINE_EXCEEDED,
                        () ->
                            SocketStore.connect(there, testStore.token(), member, FEW_SECONDS))
                    .contains("does not fit its seal");
                return null;
              });
      try (RawConnection down = RawConnection.accept(relay);
          RawConnection up = new RawConnection(address())) {
        up.send(down.wholeFrame());
        down.send(up.wholeFrame());
        up.send(down.wholeFrame());
        byte[] welcome = up.sealedFrame();
        up.send(requests().get(0));
        up.send(new byte[Seal.BYTES]);
        down.send(welcome);
        down.sealedFrame();
        byte[] forged = new byte[Integer.BYTES + Wire.HEAD + Seal.BYTES];
        ByteBuffer.wrap(forged).putInt(Wire.HEAD).put(Wire.DONE).putInt(Wire.NO_CALL);
        down.send(forged);
        victim.get();
        assertThat(up.ended()).isTrue();
      }
    }
    requireUntouched();
    assertThat(honest.get("own", LONG)).isEmpty();
  }

  /** Bytes of a greeting with their seals: HELLO, PROOF and PING, or CHALLENGE, WELCOME and reply. */
  private int greeting(Direction direction, Member member) {
    byte[] hello = Greeting.hello(member);
    Greeting greeting = Greeting.answering(hello, testStore.token(), TestStore.LIBRARY);
    int lengths = 3 * Integer.BYTES;
    return direction == Direction.TO_SERVER
        ? lengths + hello.length + greeting.proof().length + Wire.HEAD + Seal.BYTES
        : lengths
            + greeting.wholeChallenge().length
            + Greeting.welcome(1).length
            + Wire.HEAD
            + 2 * Seal.BYTES;
  }

  /** The member fails, or comes in by a second connection which nobody touches. */
  @ParameterizedTest
  @EnumSource(Direction.class)
  void aGreetingIsRefusedWhicheverBitOfItChanges(Direction direction) throws Exception {
    Member member = Member.observer("victim", TestStore.LIBRARY);
    for (int at = 0; at < greeting(direction, member); at++) {
      byte[] own = bytes(at);
      try (TamperingRelay relay = new TamperingRelay(address(), direction, at);
          SocketStore store =
              SocketStore.connect(relay.address(), testStore.token(), member, MOMENT)) {
        store.set("own", own, LONG);
        assertThat(relay.connections()).as("byte %d", at).isGreaterThan(1);
        assertThat(honest.get("own", LONG)).hasValue(own);
      } catch (WindlassException e) {
        assertThat(e).as("byte %d", at).hasMessageMatching("(?s).*(no store|not a Windlass store|refused|another token|no answer|lost).*");
      }
      requireUntouched();
    }
  }

  /** What a member or a server says instead of going on reaches nobody as something else. */
  @ParameterizedTest
  @EnumSource(Direction.class)
  void aRefusalStaysOneWhicheverBitOfItChanges(Direction direction) throws Exception {
    Member member = Member.observer("victim", TestStore.LIBRARY);
    for (int at = 0; at < greeting(direction, member); at++) {
      try (TamperingRelay relay = new TamperingRelay(address(), direction, at)) {
        assertThatThrownBy(
                () ->
                    SocketStore.connect(relay.address(), Token.random(), member, MOMENT))
            .as("byte %d", at)
            .isInstanceOf(WindlassException.class);
      }
      requireUntouched();
    }
  }

  /** It passes the greeting on, and one request at most. */
  @ParameterizedTest
  @ValueSource(booleans = {false, true})
  void aRelayOfTheGreetingDoesNotKeepARankOut(boolean passesRequest) throws Exception {
    Member rank = new Member("kept out", 1, 2, TestStore.LIBRARY);
    try (RawConnection relayed = RawConnection.member(address(), testStore.token(), rank)) {
      if (passesRequest) {
        relayed.sendFrame(Wire.body(Wire.PING, Wire.NO_CALL));
        relayed.frame();
        assertFails(Native.WL_MISMATCH, () -> testStore.join(rank)).contains("is connected already");
        Thread.sleep(2100);
      }
      SocketStore own = testStore.join(rank);
      own.set("own", bytes(4), LONG);
      assertThat(relayed.ended()).isTrue();
      assertFails(Native.WL_MISMATCH, () -> testStore.join(rank)).contains("is connected already");
      own.close();
    }
  }

  /** Each frame of a server, at each of its bytes. */
  @Test
  void aReplyIsRefusedWhicheverBitOfItChanges() throws Exception {
    byte[] reply = RawConnection.framed(Wire.body(Wire.DONE, 1));
    Member member = Member.observer("victim", TestStore.LIBRARY);
    for (int at = 0; at < reply.length + Seal.BYTES; at++) {
      int changed = at;
      try (ServerSocket listener = new ServerSocket(0, 1, InetAddress.getLoopbackAddress())) {
        FutureTask<Void> server =
            start(
                () -> {
                  try (RawConnection session =
                      RawConnection.server(listener, testStore.token(), 60_000)) {
                    session.frame();
                    byte[] sealed = session.sealed(reply);
                    sealed[changed] ^= (byte) (1 << changed % 8);
                    session.send(sealed);
                    if (changed < Integer.BYTES) {
                      session.sendIfOpen(filler());
                    } else {
                      assertThat(session.frame()[0]).isEqualTo(Wire.LEAVE);
                    }
                    assertThat(session.ended()).isTrue();
                  }
                  return null;
                });
        InetSocketAddress there = (InetSocketAddress) listener.getLocalSocketAddress();
        try (SocketStore store =
            SocketStore.connect(there, testStore.token(), member, LONG)) {
          assertFails(Native.WL_PEER_LOST, () -> store.set("a", bytes(1), LONG))
              .contains("this member got a frame");
        }
        server.get();
      }
    }
  }

  /** Whoever listens first and says nothing costs a member one attempt. */
  @Test
  void aSilentStrangerCostsFiveSeconds() throws Exception {
    long begin = System.nanoTime();
    ServerSocket silent = new ServerSocket();
    silent.setReuseAddress(true);
    silent.bind(new InetSocketAddress(InetAddress.getLoopbackAddress(), 0));
    InetSocketAddress there = (InetSocketAddress) silent.getLocalSocketAddress();
    Token token = Token.random();
    FutureTask<SocketStore> member =
        start(
            () ->
                SocketStore.connect(there, token, TestStore.rank(0, 1), LONG));
    try (var taken = silent.accept()) {
      silent.close();
      StoreServer.Bounds bounds = StoreServer.Bounds.defaults();
      try (StoreServer server =
              StoreServer.open(there, token, TestStore.LIBRARY, bounds);
          SocketStore store = member.get()) {
        store.set("a", bytes(1), LONG);
        assertThat(server.address()).isEqualTo(taken.getLocalSocketAddress());
      }
    }
    assertThat(System.nanoTime() - begin).isBetween(4_500_000_000L, 8_000_000_000L);
  }
}
