// SPDX-License-Identifier: Apache-2.0
package org.windlass.internal.store;

import java.io.IOException;
import java.net.InetSocketAddress;
import java.nio.ByteBuffer;
import java.nio.channels.SelectionKey;
import java.nio.channels.SocketChannel;
import java.util.HashMap;
import java.util.Map;
import java.util.Objects;
import org.jspecify.annotations.Nullable;
import org.windlass.error.InvalidArgumentException;
import org.windlass.error.ResourceException;
import org.windlass.error.WindlassException;

/**
 * One connection of a {@link StoreServer}. Its peer is called a stranger until it has proved the
 * token, and a member afterwards. The session carries out the member's requests. It runs on the
 * server's thread.
 */
final class Session {
  static final int WAITS = 1024;

  /** Bytes of queued replies above which the session reads no more requests. */
  private static final long BACKLOG = 1 << 20;

  /** Time within which a member sends a second request after the reply to its first PING. */
  private static final long SECOND_REQUEST_NS = 2_000_000_000;

  private static final String OTHER_TOKEN = "the member holds another token than the store";

  private enum Stage {
    HELLO,
    PROOF,
    MEMBER,
    /** The session ends once the queued frames are written. */
    LEAVING
  }

  private final StoreServer server;
  private final SocketChannel socket;
  private final SelectionKey key;
  private final FrameChannel channel;
  private final Map<Integer, Table.Wait> waits = new HashMap<>();
  private final String peer;

  private Stage stage = Stage.HELLO;
  private long requests;

  long heardNs = System.nanoTime(); // time of the connection; for a member, of its last frame
  boolean isAdmitted; // true if a member has, or had, this connection
  boolean isHolder; // true if the member holds keys, or has held some
  @Nullable Greeting greeting;
  @Nullable Member member; // that the HELLO names; it counts only after the proof

  Session(StoreServer server, SocketChannel socket, SelectionKey key) throws IOException {
    this.server = server;
    this.socket = socket;
    this.key = key;
    this.channel = new FrameChannel(socket, socket);
    this.peer = Sockets.name((InetSocketAddress) socket.getRemoteAddress());
  }

  boolean isMember() {
    return stage == Stage.MEMBER;
  }

  /** Returns the peer's address. After the proof of the token, also returns the member's name. */
  String peer() {
    return isAdmitted ? peer + ", " + member : peer;
  }

  /**
   * Returns true if the member has sent two requests, or the first one within {@link
   * #SECOND_REQUEST_NS}. One request is no proof: a relay may pass on the first PING, and keep its
   * reply.
   */
  boolean hasSpoken() {
    return requests > 1 || requests == 1 && System.nanoTime() - heardNs < SECOND_REQUEST_NS;
  }

  /** Reads and handles received bytes. Returns false at the end of the stream. */
  boolean receive() throws IOException {
    if (!channel.fill()) {
      return false;
    }
    if (isMember()) {
      heardNs = System.nanoTime();
    }
    work();
    return true;
  }

  /** Writes as many bytes as the socket accepts at once. Returns false if the session is over. */
  boolean send() throws IOException {
    boolean all = channel.flush();
    if (all && stage == Stage.LEAVING) {
      return false;
    }
    work();
    boolean reads = stage != Stage.LEAVING && channel.queued() < BACKLOG;
    boolean writes = channel.queued() > 0;
    key.interestOps(
        (reads ? SelectionKey.OP_READ : 0) | (writes ? SelectionKey.OP_WRITE : 0));
    return true;
  }

  /**
   * Lets a member receive the queued frames, and reads no more requests.
   *
   * @return false once the member has closed the connection
   */
  boolean drain() {
    try {
      if (channel.flush()) {
        socket.shutdownOutput();
      }
      return socket.read(ByteBuffer.allocate(FrameChannel.CHUNK)) >= 0;
    } catch (IOException e) {
      return false;
    }
  }

  /** Ends the session's waits, removes its held keys, and closes the connection. */
  void end() {
    waits.values().forEach(Table.Wait::cancel);
    waits.clear();
    server.table.release(this);
    Sockets.close(socket);
  }

  /**
   * Handles the complete frames, while there is room for replies. A stranger gets the reason for a
   * refusal, but no details about an error in a frame.
   */
  private void work() throws IOException {
    while (stage != Stage.LEAVING && channel.queued() < BACKLOG) {
      try {
        ByteBuffer frame = channel.next();
        if (frame == null) {
          return;
        }
        switch (stage) {
          case HELLO -> hello(frame);
          case PROOF -> proof(frame);
          default -> request(frame);
        }
      } catch (MalformedException e) {
        if (!isMember()) {
          throw e;
        }
        server.log.warn(peer(), "it sent " + e.getMessage());
        String why = "the store got " + e.getMessage();
        queue(Wire.refusal(Wire.NO_CALL, new InvalidArgumentException(why)));
        stage = Stage.LEAVING;
      } catch (WindlassException e) {
        server.log.warn(peer, e.getMessage());
        queue(Wire.refused(e.code().number(), e.getMessage()));
        stage = Stage.LEAVING;
      }
    }
  }

  private void hello(ByteBuffer frame) throws MalformedException {
    byte[] hello = Wire.bytes(frame, frame.remaining());
    member = Wire.read(ByteBuffer.wrap(hello), body -> Greeting.hello(body, server.library));
    greeting = Greeting.answering(hello, server.token, server.library);
    queue(greeting.wholeChallenge());
    stage = Stage.PROOF;
  }

  private void proof(ByteBuffer frame) throws MalformedException {
    if (frame.get(0) == Wire.REFUSED) {
      server.log.warn(peer, OTHER_TOKEN);
      stage = Stage.LEAVING;
      return;
    }
    Greeting answered = Objects.requireNonNull(greeting);
    if (!answered.isProof(frame)) {
      throw new ResourceException(OTHER_TOKEN);
    }
    channel.sealed(answered.serverSeal(), answered.memberSeal());
    server.admit(this);
    stage = Stage.MEMBER;
    isAdmitted = true;
    heardNs = System.nanoTime();
    queue(Greeting.welcome(server.bounds.silence().toMillis()));
  }

  private void request(ByteBuffer frame) throws MalformedException {
    requests++;
    Wire.Request request = Wire.read(frame, Wire::request);
    try {
      carryOut(request, request.id(), request.text());
    } catch (WindlassException e) {
      queue(Wire.refusal(request.id(), e));
    }
  }

  private void carryOut(Wire.Request request, int id, String text) throws MalformedException {
    Table table = server.table;
    switch (request.kind()) {
      case Wire.SET -> {
        table.set(text, Objects.requireNonNull(request.value()));
        reply(id);
      }
      case Wire.GET -> queueArray(id, new byte[0], table.get(text));
      case Wire.AWAIT -> await(id, request.seen());
      case Wire.CAS ->
          reply(id, bit(table.compareAndSet(text, request.expected(), request.value())));
      case Wire.HOLD -> {
        isHolder = true;
        reply(id, bit(table.hold(text, Objects.requireNonNull(request.value()), this)));
      }
      case Wire.KEYS -> reply(id, Wire.keys(table.keys(text)));
      case Wire.CANCEL -> cancel(id);
      case Wire.PING -> reply(id);
      case Wire.LEAVE -> {
        server.log.warn(peer(), "it goes, because " + Texts.printable(text));
        stage = Stage.LEAVING;
      }
      default -> throw new AssertionError(request.kind());
    }
  }

  private void await(int id, Map<String, byte @Nullable []> seen) throws MalformedException {
    if (waits.containsKey(id)) {
      throw new MalformedException("two waits of one id");
    }
    if (waits.size() == WAITS) {
      throw new ResourceException("this connection has " + WAITS + " waits, as many as it may");
    }
    Table.Wait wait =
        server.table.await(
            seen,
            change -> {
              waits.remove(id);
              queueArray(id, Wire.text(change.key()), change.value());
            });
    if (wait != null) {
      waits.put(id, wait);
    }
  }

  private void cancel(int id) {
    Table.Wait wait = waits.remove(id);
    if (wait != null) {
      wait.cancel();
    }
  }

  private static byte[] bit(boolean result) {
    return new byte[] {(byte) (result ? 1 : 0)};
  }

  void reply(int id, byte... fields) {
    queue(Wire.body(Wire.DONE, id, fields));
  }

  /** Queues a reply with the fields {@code head} and an array, which is not copied. */
  private void queueArray(int id, byte[] head, byte @Nullable [] value) {
    int length = value == null ? -1 : value.length;
    byte[] size = ByteBuffer.allocate(Integer.BYTES).putInt(length).array();
    queue(Wire.body(Wire.DONE, id, head, size), value == null ? new byte[0] : value);
  }

  private void queue(byte[] head, byte... rest) {
    channel.send(head, rest);
    server.dirty.add(this);
  }
}
