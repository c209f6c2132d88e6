// SPDX-License-Identifier: Apache-2.0
package org.windlass.internal.store;

import java.io.IOException;
import java.net.InetSocketAddress;
import java.nio.BufferUnderflowException;
import java.nio.ByteBuffer;
import java.nio.channels.SelectionKey;
import java.nio.channels.SocketChannel;
import java.nio.charset.StandardCharsets;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.windlass.internal.Native;

/**
 * One connection of a {@link StoreServer}. It belongs to a stranger until the proof, then to a
 * member, whose requests it carries out. All of it runs on the server's thread.
 */
final class Session {
  /** The most waits of one connection. */
  static final int WAITS = 1024;

  /** Queued bytes of replies, above which the session reads no request. */
  private static final long BACKLOG = 1 << 20;

  private static final String OTHER_TOKEN = "the member holds another token than the store";

  private enum Stage {
    HELLO,
    PROOF,
    MEMBER,
    /** The session ends once the queued frames are written. */
    LEAVING
  }

  private final StoreServer server;
  private final SelectionKey key;
  private final FrameChannel channel;
  private final Map<Integer, Table.Wait> waits = new HashMap<>();
  private final String peer;

  /** Time of the connection; for a member, of its last frame. */
  private long heardNs = System.nanoTime();

  private Stage stage = Stage.HELLO;
  private boolean isAdmitted;
  private boolean tookPart;
  private boolean hasSpoken;
  private byte[] hello;
  private byte[] challenge;

  /** Member that the HELLO names. It counts only after the proof. */
  private Member member;

  /** True if the server's list of sessions with something to write has this one. */
  boolean isDirty;

  Session(StoreServer server, SocketChannel socket, SelectionKey key) throws IOException {
    this.server = server;
    this.key = key;
    this.channel = new FrameChannel(socket);
    InetSocketAddress remote = (InetSocketAddress) socket.getRemoteAddress();
    this.peer = Sockets.name(remote);
  }

  /** Returns true if a member has this connection, or had it until it began to leave. */
  boolean isAdmitted() {
    return isAdmitted;
  }

  /** Returns the member, which has proved the token. */
  Member member() {
    return member;
  }

  /** Returns the CHALLENGE without its proof; null before the HELLO. */
  byte[] challenge() {
    return challenge;
  }

  boolean isMember() {
    return stage == Stage.MEMBER;
  }

  /** Returns the peer's address, and the member's name after the proof. */
  String peer() {
    return isAdmitted ? peer + ", " + member : peer;
  }

  long heardNs() {
    return heardNs;
  }

  /**
   * Reads and handles what has arrived.
   *
   * @return false at the end of the stream
   * @throws Refusal if the peer refused this server
   */
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

  /** Writes what the socket takes. Returns false if the session is over. */
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
   * Lets a member of an all-gather hear what was sent to it, and reads no more requests.
   *
   * @return false once it has closed the connection
   */
  boolean drain() throws IOException {
    if (channel.flush()) {
      channel.shutdownOutput();
    }
    return channel.discard();
  }

  /** Returns true if the member has sent a frame since the WELCOME. */
  boolean hasSpoken() {
    return hasSpoken;
  }

  /** Returns true if it has taken part in an all-gather. */
  boolean tookPart() {
    return tookPart;
  }

  /** Ends the session's waits and all-gathers, removes its held keys, and closes the connection. */
  void end() {
    waits.values().forEach(Table.Wait::cancel);
    waits.clear();
    server.allGathers().leave(this);
    server.table().release(this);
    channel.close();
  }

  /** Handles the frames that have arrived whole, while there is room for replies. */
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
      } catch (BufferUnderflowException e) {
        endFor("a frame that ends too early");
      } catch (MalformedException e) {
        endFor(e.getMessage());
      }
    }
  }

  /** Ends the session because of a frame. A member gets the reason, a stranger does not. */
  private void endFor(String came) throws MalformedException {
    if (!isMember()) {
      throw new MalformedException(came);
    }
    server.log().warn(peer(), "it sent " + came);
    Refusal why = new Refusal(Native.WL_INVALID_ARGUMENT, "the store got " + came);
    queue(Wire.refusal(Wire.NO_CALL, why));
    stage = Stage.LEAVING;
  }

  private void hello(ByteBuffer frame) throws MalformedException {
    byte[] bytes = Wire.bytes(frame, frame.remaining());
    Greeting.Hello said = Greeting.hello(ByteBuffer.wrap(bytes));
    if (said.protocol() != Wire.PROTOCOL) {
      refuse(
          Native.WL_MISMATCH,
          "the member has " + Greeting.versions(said.protocol(), said.library())
              + "; the store has " + Greeting.versions(Wire.PROTOCOL, server.library())
              + "; run both with one version");
      return;
    }
    hello = bytes;
    member = said.member();
    challenge = Greeting.challenge(server.library());
    queue(Greeting.challenge(server.token(), hello, challenge));
    stage = Stage.PROOF;
  }

  private void proof(ByteBuffer frame) throws MalformedException {
    if (Greeting.isRefusal(frame)) {
      throw new Refusal(Native.WL_RESOURCE, OTHER_TOKEN);
    }
    if (!Greeting.proves(frame, server.token(), hello, challenge)) {
      refuse(Native.WL_RESOURCE, OTHER_TOKEN);
      return;
    }
    channel.met(
        Greeting.ofServer(server.token(), hello, challenge),
        Greeting.ofMember(server.token(), hello, challenge));
    Refusal objection = server.objection(member);
    if (objection != null) {
      refuse(objection.code(), objection.getMessage());
      return;
    }
    stage = Stage.MEMBER;
    isAdmitted = true;
    heardNs = System.nanoTime();
    server.admit(this);
    queue(Greeting.welcome(server.silenceMs()));
  }

  private void refuse(int code, String text) {
    server.log().warn(peer, text);
    queue(Wire.refused(code, text));
    stage = Stage.LEAVING;
  }

  private void request(ByteBuffer frame) throws MalformedException {
    hasSpoken = true;
    byte kind = frame.get();
    int id = frame.getInt();
    try {
      switch (kind) {
        case Wire.SET -> set(id, frame);
        case Wire.GET -> get(id, frame);
        case Wire.AWAIT -> await(id, frame);
        case Wire.CAS -> compareAndSet(id, frame);
        case Wire.HOLD -> hold(id, frame);
        case Wire.KEYS -> keys(id, frame);
        case Wire.CANCEL -> cancel(id, frame);
        case Wire.PING -> ping(id, frame);
        case Wire.LEAVE -> leave(frame);
        case Wire.GATHER -> gather(id, frame);
        case Wire.QUIT -> quit(frame);
        default -> throw new MalformedException("a request of kind " + kind);
      }
    } catch (Refusal refusal) {
      queueRefusal(id, refusal);
    }
  }

  private void set(int id, ByteBuffer frame) throws MalformedException {
    String name = Wire.key(frame);
    byte[] value = Wire.value(frame);
    Wire.end(frame);
    server.table().set(name, value);
    queue(done(id, 0).flip());
  }

  private void get(int id, ByteBuffer frame) throws MalformedException {
    String name = Wire.key(frame);
    Wire.end(frame);
    queueArray(id, server.table().get(name));
  }

  private void await(int id, ByteBuffer frame) throws MalformedException {
    String name = Wire.key(frame);
    byte[] seen = Wire.array(frame);
    Wire.end(frame);
    if (waits.containsKey(id)) {
      throw new MalformedException("two waits of one id");
    }
    if (waits.size() == WAITS) {
      throw new Refusal(
          Native.WL_RESOURCE, "this connection has " + WAITS + " waits, as many as it may");
    }
    Table.Wait wait =
        server
            .table()
            .await(
                name,
                seen,
                value -> {
                  waits.remove(id);
                  queueArray(id, value);
                });
    if (wait != null) {
      waits.put(id, wait);
    }
  }

  private void compareAndSet(int id, ByteBuffer frame) throws MalformedException {
    String name = Wire.key(frame);
    byte[] expected = Wire.array(frame);
    byte[] value = Wire.array(frame);
    Wire.end(frame);
    queueBoolean(id, server.table().compareAndSet(name, expected, value));
  }

  private void hold(int id, ByteBuffer frame) throws MalformedException {
    String name = Wire.key(frame);
    byte[] value = Wire.value(frame);
    Wire.end(frame);
    queueBoolean(id, server.table().hold(name, value, this));
  }

  private void keys(int id, ByteBuffer frame) throws MalformedException {
    String prefix = Wire.text(frame, Limits.KEY);
    Wire.end(frame);
    List<byte[]> keys =
        server.table().keys(prefix).stream()
            .map(name -> name.getBytes(StandardCharsets.UTF_8))
            .toList();
    int bytes = keys.stream().mapToInt(Wire::textBytes).sum();
    ByteBuffer reply = done(id, Integer.BYTES + bytes).putInt(keys.size());
    keys.forEach(utf8 -> Wire.putText(reply, utf8));
    queue(reply.flip());
  }

  private void cancel(int id, ByteBuffer frame) throws MalformedException {
    Wire.end(frame);
    Table.Wait wait = waits.remove(id);
    if (wait != null) {
      wait.cancel();
    }
  }

  private void ping(int id, ByteBuffer frame) throws MalformedException {
    Wire.end(frame);
    queue(done(id, 0).flip());
  }

  private void leave(ByteBuffer frame) throws MalformedException {
    String why = Wire.text(frame, Wire.REFUSAL);
    Wire.end(frame);
    server.log().warn(peer(), "it goes, because " + Texts.printable(why));
    stage = Stage.LEAVING;
  }

  private void gather(int id, ByteBuffer frame) throws MalformedException {
    Round round = Wire.round(frame);
    tookPart = true;
    server.allGathers().gather(this, id, round);
  }

  private void quit(ByteBuffer frame) throws MalformedException {
    String name = Wire.key(frame);
    Wire.end(frame);
    server.allGathers().quit(this, name);
  }

  /** Notes that rank 0 has come, for a member that waits in an all-gather. */
  void queueNote(int id) {
    queue(done(id, 1).put(Wire.NOTE).flip());
  }

  /** Sends what all ranks have said in a round. Any number of replies share the array. */
  void queueValues(int id, byte[] values) {
    int from = 0;
    do {
      int length = Math.min(Wire.PIECE_BYTES, values.length - from);
      boolean isLast = from + length == values.length;
      ByteBuffer head = ByteBuffer.allocate(Integer.BYTES + Wire.HEAD + 1);
      head.putInt(Wire.HEAD + 1 + length).put(Wire.DONE).putInt(id);
      head.put(isLast ? Wire.LAST_PIECE : Wire.PIECE).flip();
      queue(head, ByteBuffer.wrap(values, from, length).slice());
      from += length;
    } while (from < values.length);
  }

  void queueRefusal(int id, Refusal why) {
    queue(Wire.refusal(id, why));
  }

  private static ByteBuffer done(int id, int body) {
    return Wire.frame(Wire.HEAD + body).put(Wire.DONE).putInt(id);
  }

  private void queueBoolean(int id, boolean result) {
    queue(done(id, 1).put((byte) (result ? 1 : 0)).flip());
  }

  /** Replies with an array. All replies of one value share the array. */
  private void queueArray(int id, byte[] value) {
    int length = Wire.arrayBytes(value);
    ByteBuffer head = ByteBuffer.allocate(Integer.BYTES + Wire.HEAD + Integer.BYTES);
    head.putInt(Wire.HEAD + length).put(Wire.DONE).putInt(id);
    head.putInt(value == null ? -1 : value.length).flip();
    queue(head, ByteBuffer.wrap(value == null ? new byte[0] : value));
  }

  private void queue(ByteBuffer... frame) {
    channel.send(frame);
    server.dirty(this);
  }
}
