// SPDX-License-Identifier: Apache-2.0
package org.windlass.internal.store;

import java.io.EOFException;
import java.io.IOException;
import java.net.ConnectException;
import java.net.InetSocketAddress;
import java.net.SocketTimeoutException;
import java.net.StandardSocketOptions;
import java.nio.BufferUnderflowException;
import java.nio.ByteBuffer;
import java.nio.channels.SelectionKey;
import java.nio.channels.Selector;
import java.nio.channels.SocketChannel;
import java.time.Duration;
import java.util.List;
import java.util.concurrent.TimeUnit;
import org.windlass.error.WindlassException;
import org.windlass.internal.Deadline;
import org.windlass.internal.Log;
import org.windlass.internal.Native;

/**
 * Connects a member to a {@link StoreServer}, on the calling thread. If nobody listens yet, or the
 * connection breaks before both sides have proved the token, it tries again until the deadline. An
 * attempt takes at most {@link #LONGEST_ATTEMPT}. A refusal ends it at once.
 */
final class Connector {
  private static final long FIRST_PAUSE_MS = 5;
  private static final long LONGEST_PAUSE_MS = 200;

  /** Limit of one attempt. A stranger who listens there and says nothing costs no more. */
  private static final Duration LONGEST_ATTEMPT = Duration.ofSeconds(5);

  private final InetSocketAddress address;
  private final Token token;
  private final Member member;
  private final boolean isOpened;
  private final String call;
  private final Deadline until;

  /** Says that somebody changed a frame of an attempt; empty if nobody did. */
  private String changed = "";

  /** True if the last attempt reached somebody who listens. */
  private boolean isConnected;

  /** The end of the attempt in progress, or {@link #until}. */
  private Deadline attemptUntil;

  /** True if the last attempt went to a loopback address. */
  private boolean isLoopback;

  /** The socket of the attempt in progress. */
  private SocketChannel socket;

  private Selector selector;
  private SelectionKey key;
  private FrameChannel channel;

  /** A connection, all parts of which the caller owns. */
  record Connection(Selector selector, SelectionKey key, FrameChannel channel, long silenceMs) {}

  /**
   * Makes a connector that has made no attempt.
   *
   * @param isOpened true if the store is open; then it is lost if nobody listens
   */
  Connector(
      InetSocketAddress address, Token token, Member member, boolean isOpened, Duration deadline) {
    this.address = address;
    this.token = token;
    this.member = member;
    this.isOpened = isOpened;
    this.call = "connect to the store at " + Sockets.name(address) + " as " + member;
    this.until = Deadline.of(deadline);
  }

  Connection connect() {
    String why = "no answer";
    long pause = FIRST_PAUSE_MS;
    for (; leftMs(until) > 0; pause = Math.min(2 * pause, LONGEST_PAUSE_MS)) {
      try {
        return attempt();
      } catch (MalformedException | BufferUnderflowException e) {
        throw failure(
            Native.WL_INVALID_ARGUMENT,
            "what listens there is no store of Windlass: " + e.getMessage());
      } catch (SocketTimeoutException e) {
        if (leftMs(until) <= 0) {
          break; // the reason of the attempt before says more
        }
        String what =
            isConnected ? "whoever listens there gave no answer for " : "no connection after ";
        why = what + Deadline.text(LONGEST_ATTEMPT);
      } catch (ConnectException e) {
        if (isOpened) {
          throw failure(Native.WL_PEER_LOST, "its owner has ended: " + e.getMessage());
        }
        why = e.getMessage();
      } catch (IOException e) {
        why = e.getMessage();
      }
      try {
        Thread.sleep(Math.min(pause, leftMs(until)));
      } catch (InterruptedException e) {
        throw Waits.interrupted(call);
      }
    }
    throw failure(
        Native.WL_TIMEOUT,
        "no store there after " + Deadline.text(until.deadline()) + ": " + why + changed
            + "; does its owner run?"
            + (isLoopback
                ? " That address is another in each host: where ranks live on several, name one of"
                    + " its owner's host that all reach"
                : ""));
  }

  private Connection attempt() throws IOException {
    Connection made = null;
    isConnected = false;
    boolean isLast = until.leftNs() <= LONGEST_ATTEMPT.toNanos();
    attemptUntil = isLast ? until : Deadline.of(LONGEST_ATTEMPT);
    try {
      selector = Selector.open();
      socket = SocketChannel.open();
      socket.configureBlocking(false);
      socket.setOption(StandardSocketOptions.TCP_NODELAY, true);
      key = socket.register(selector, SelectionKey.OP_CONNECT);
      channel = new FrameChannel(socket);
      InetSocketAddress known = Sockets.resolved(address);
      isLoopback = known.getAddress().isLoopbackAddress();
      if (!socket.connect(known)) {
        do {
          waitFor(SelectionKey.OP_CONNECT);
        } while (!socket.finishConnect());
      }
      if (socket.getLocalAddress().equals(socket.getRemoteAddress())) {
        // If nobody listens, a socket that got this port for its own end connects to itself.
        throw new ConnectException("nobody listens there");
      }
      isConnected = true;
      made = new Connection(selector, key, channel, greet());
      return made;
    } finally {
      if (made == null) {
        close();
      }
    }
  }

  private void close() {
    Sockets.close(socket);
    Sockets.close(selector);
    socket = null;
    selector = null;
  }

  /** Greets the server. Returns the milliseconds of silence that it bears. */
  private long greet() throws IOException {
    byte[] hello = Greeting.hello(member);
    send(Wire.frame(hello.length).put(hello).flip());
    ByteBuffer challenge = receive(Wire.CHALLENGE);
    byte[] proven =
        Greeting.proven(token, hello, Wire.bytes(challenge, challenge.remaining()));
    if (proven == null) {
      sendLast(Greeting.refusal());
      throw failure(
          Native.WL_RESOURCE,
          "the store holds another token than this member; set WINDLASS_TOKEN_FILE to the store's");
    }
    send(Greeting.answer(token, hello, proven));
    channel.met(
        Greeting.ofMember(token, hello, proven), Greeting.ofServer(token, hello, proven));
    try {
      return beWelcomed();
    } catch (MalformedException | BufferUnderflowException e) {
      String why = "this member got " + e.getMessage();
      Log.warn(call + ": " + why);
      sendLast(Wire.leave(why));
      changed = "; an attempt before failed because " + why;
      throw new IOException(why);
    }
  }

  /**
   * Says something, and hears an answer, so that no relay of the greeting alone is taken for it.
   */
  private long beWelcomed() throws IOException {
    ByteBuffer welcome = receive(Wire.WELCOME);
    welcome.get();
    long silenceMs = welcome.getLong();
    Wire.end(welcome);
    if (silenceMs < 1) {
      throw new MalformedException("a silence of " + silenceMs + " ms");
    }
    send(Wire.frame(Wire.HEAD).put(Wire.PING).putInt(Wire.NO_CALL).flip());
    receive(Wire.DONE);
    return silenceMs;
  }

  private void send(ByteBuffer frame) throws IOException {
    channel.send(frame);
    while (!channel.flush()) {
      waitFor(SelectionKey.OP_WRITE);
    }
  }

  /** Sends a last frame, if that is possible. */
  private void sendLast(ByteBuffer frame) {
    try {
      channel.send(frame);
      channel.flush(); // the socket has room for so few bytes
    } catch (IOException e) {
      // The connection is broken.
    }
  }

  /** Returns the next frame, which must be of {@code kind}. Throws a refusal. */
  private ByteBuffer receive(byte kind) throws IOException {
    ByteBuffer frame;
    while ((frame = channel.next()) == null) {
      waitFor(SelectionKey.OP_READ);
      if (!channel.fill()) {
        throw new EOFException("it closed the connection");
      }
    }
    if (frame.get(0) == Wire.REFUSED) {
      frame.get();
      int code = frame.getInt();
      if (code != Native.WL_MISMATCH && code != Native.WL_RESOURCE) {
        throw new MalformedException("a refusal of code " + code);
      }
      throw failure(code, "refused: " + Texts.printable(Wire.text(frame, Wire.REFUSAL)));
    }
    if (frame.get(0) != kind) {
      throw new MalformedException("a frame of kind " + frame.get(0));
    }
    return frame;
  }

  private void waitFor(int operation) throws IOException {
    key.interestOps(operation);
    do {
      long left = leftMs(attemptUntil);
      if (left <= 0) {
        throw new SocketTimeoutException();
      }
      selector.select(left);
      if (Thread.interrupted()) {
        throw Waits.interrupted(call);
      }
    } while (selector.selectedKeys().isEmpty());
    selector.selectedKeys().clear();
  }

  private static long leftMs(Deadline deadline) {
    long left = deadline.leftNs();
    return left <= 0 ? 0 : TimeUnit.NANOSECONDS.toMillis(left) + 1;
  }

  private RuntimeException failure(int code, String text) {
    return WindlassException.of(code, call + ": " + text, List.of());
  }
}
