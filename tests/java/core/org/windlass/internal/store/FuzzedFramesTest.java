// SPDX-License-Identifier: Apache-2.0
package org.windlass.internal.store;

import static org.assertj.core.api.Assertions.assertThat;

import java.io.IOException;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.net.Socket;
import java.net.SocketAddress;
import java.net.SocketOption;
import java.nio.BufferUnderflowException;
import java.nio.ByteBuffer;
import java.nio.channels.SelectableChannel;
import java.nio.channels.SelectionKey;
import java.nio.channels.Selector;
import java.nio.channels.SocketChannel;
import java.nio.channels.spi.AbstractSelectionKey;
import java.nio.channels.spi.SelectorProvider;
import java.util.List;
import java.util.Map;
import java.util.Random;
import java.util.Set;
import org.junit.jupiter.api.Timeout;
import org.windlass.error.PeerLostException;
import org.windlass.error.WindlassException;
import org.windlass.testing.Mutation;
import org.windlass.testing.RandomSeeds;

/**
 * Frames of strangers and of members with bits changed, pieces cut, moved and repeated, read by a
 * server's session and by a member: a session goes on or ends, and nothing else happens. A hundred
 * thousand frames, ten million in the long form.
 */
@Timeout(3600)
class FuzzedFramesTest {
  private static final int FRAMES = 1000;
  private static final byte[] KEPT = {1, 2, 3};

  /** A socket from which a test's bytes come, and into which everything fits. */
  private static final class Bytes extends SocketChannel {
    private ByteBuffer in = ByteBuffer.allocate(0);

    Bytes() {
      super(SelectorProvider.provider());
    }

    void come(byte[] bytes) {
      in = ByteBuffer.wrap(bytes);
    }

    @Override
    public int read(ByteBuffer to) {
      int count = Math.min(to.remaining(), in.remaining());
      to.put(in.slice(in.position(), count));
      in.position(in.position() + count);
      return count;
    }

    @Override
    public int write(ByteBuffer from) {
      int count = from.remaining();
      from.position(from.limit());
      return count;
    }

    @Override
    public SocketAddress getRemoteAddress() {
      return new InetSocketAddress(InetAddress.getLoopbackAddress(), 1);
    }

    @Override
    public SocketAddress getLocalAddress() {
      return getRemoteAddress();
    }

    @Override
    public long read(ByteBuffer[] to, int offset, int length) {
      throw new UnsupportedOperationException();
    }

    @Override
    public long write(ByteBuffer[] from, int offset, int length) {
      throw new UnsupportedOperationException();
    }

    @Override
    public SocketChannel bind(SocketAddress local) {
      return this;
    }

    @Override
    public <T> SocketChannel setOption(SocketOption<T> name, T value) {
      return this;
    }

    @Override
    public <T> T getOption(SocketOption<T> name) {
      return null;
    }

    @Override
    public Set<SocketOption<?>> supportedOptions() {
      return Set.of();
    }

    @Override
    public SocketChannel shutdownInput() {
      return this;
    }

    @Override
    public SocketChannel shutdownOutput() {
      return this;
    }

    @Override
    public Socket socket() {
      return null;
    }

    @Override
    public boolean isConnected() {
      return true;
    }

    @Override
    public boolean isConnectionPending() {
      return false;
    }

    @Override
    public boolean connect(SocketAddress remote) {
      return true;
    }

    @Override
    public boolean finishConnect() {
      return true;
    }

    @Override
    protected void implCloseSelectableChannel() {}

    @Override
    protected void implConfigureBlocking(boolean block) {}
  }

  /** A key whose operations nobody looks at. */
  private static final class Key extends AbstractSelectionKey {
    @Override
    public SelectableChannel channel() {
      return null;
    }

    @Override
    public Selector selector() {
      return null;
    }

    @Override
    public int interestOps() {
      return 0;
    }

    @Override
    public SelectionKey interestOps(int ops) {
      return this;
    }

    @Override
    public int readyOps() {
      return 0;
    }
  }

  /** A session and the other side of it, which has shown the token or is a stranger. */
  private static final class Peer {
    private final Bytes socket = new Bytes();
    private final Session session;
    private Seal seal;

    Peer(StoreServer server, boolean isMember) throws IOException {
      session = new Session(server, socket, new Key());
      if (isMember) {
        byte[] hello = Greeting.hello(Member.observer("fuzzed", TestStore.LIBRARY));
        say(RawConnection.framed(hello));
        Greeting greeting = session.greeting;
        say(RawConnection.framed(greeting.proof()));
        seal = greeting.memberSeal();
        assertThat(session.isMember()).isTrue();
      }
    }

    /** Returns false if the session is over. */
    boolean say(byte[] frame) {
      byte[] seals = seal == null ? new byte[0] : seal.next(ByteBuffer.wrap(frame));
      socket.come(
          ByteBuffer.allocate(frame.length + seals.length).put(frame).put(seals).array());
      try {
        while (socket.in.hasRemaining()) {
          if (!session.receive()) {
            return false;
          }
        }
        return session.send();
      } catch (IOException | WindlassException e) {
        return false; // the server drops such a session
      }
    }
  }

  /** A frame whose body was changed; its length is right in most cases. */
  private static byte[] mutated(byte[] frame, Random random) {
    byte[] mutated = Mutation.of(frame, random);
    if (random.nextInt(8) > 0 && mutated.length > Integer.BYTES) {
      ByteBuffer.wrap(mutated).putInt(mutated.length - Integer.BYTES);
    }
    return mutated;
  }

  @SuppressWarnings("try") // the log is not looked at
  @RandomSeeds(value = 100, inLong = 10_000)
  void aServersSessionGoesOnOrEnds(long seed) throws Exception {
    Random random = new Random(seed);
    Token token = Token.random();
    try (Log log = new Log();
        StoreServer server =
            StoreServer.open(
                StoreServer.loopback(), token, TestStore.LIBRARY, StoreServer.Bounds.defaults())) {
      server.table.set("kept", KEPT);
      byte[] greeting = RawConnection.framed(Greeting.hello(TestStore.rank(0, 1)));
      Peer peer = null;
      boolean isMember = false;
      for (int frames = 0; frames < FRAMES; frames++) {
        if (peer == null) {
          isMember = random.nextInt(8) > 0;
          peer = new Peer(server, isMember);
        }
        byte[] frame = mutated(isMember ? Strangers.request(random) : greeting, random);
        if (!peer.say(frame) || random.nextInt(50) == 0) {
          peer.session.end();
          peer = null;
        }
      }
      assertThat(server.table.get("kept")).isEqualTo(KEPT);
    }
  }

  /** A reader of what came over a wire. */
  @FunctionalInterface
  private interface Reader {
    void read(ByteBuffer frame) throws Exception;
  }

  private static final Map<String, Reader> READERS =
      Map.of(
          "hello", frame -> Greeting.hello(frame, ""),
          "request", Wire::request,
          "refusal", frame -> Wire.refusal((byte) 4, frame),
          "keys", Wire::keys,
          "value", Wire::value,
          "text", frame -> Wire.text(frame, Wire.REFUSAL),
          "challenge",
              frame ->
                  Greeting.answered(
                      new byte[9], Token.random(), Wire.bytes(frame, frame.remaining())));

  @RandomSeeds(value = 20, inLong = 2000)
  void whatIsReadIsReadOrRefused(long seed) throws Exception {
    Random random = new Random(seed);
    byte[] refusal =
        RawConnection.framed(Wire.refusal(3, new PeerLostException("why", List.of(1, 2))));
    for (int frames = 0; frames < FRAMES; frames++) {
      byte[] request = random.nextBoolean() ? Strangers.request(random) : refusal;
      byte[] frame = mutated(request, random);
      int from = Math.min(frame.length, random.nextInt(12));
      for (Reader reader : READERS.values()) {
        try {
          reader.read(ByteBuffer.wrap(frame, from, frame.length - from).slice());
        } catch (MalformedException | BufferUnderflowException e) {
          // This is how such a frame is refused.
        }
      }
    }
  }
}
