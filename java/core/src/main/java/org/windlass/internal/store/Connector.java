// SPDX-License-Identifier: Apache-2.0
package org.windlass.internal.store;

import java.io.EOFException;
import java.io.IOException;
import java.net.ConnectException;
import java.net.InetSocketAddress;
import java.net.SocketTimeoutException;
import java.net.StandardSocketOptions;
import java.nio.ByteBuffer;
import java.nio.channels.Channels;
import java.nio.channels.SocketChannel;
import java.time.Duration;
import java.util.concurrent.TimeUnit;
import org.windlass.error.DeadlineExceededException;
import org.windlass.error.InvalidArgumentException;
import org.windlass.error.MismatchException;
import org.windlass.error.PeerLostException;
import org.windlass.error.ResourceException;
import org.windlass.internal.Deadline;
import org.windlass.internal.Log;
import org.windlass.internal.Native;

/**
 * Connects a member to a {@link StoreServer}, on the calling thread. If no server listens yet, or
 * the connection breaks before both sides have proved the token, it tries again until the deadline.
 * An attempt takes at most {@link #LONGEST_ATTEMPT}. This limits the time that is lost if another
 * program listens at the address. If the server refuses the member, the attempts end at once.
 */
final class Connector {
  private static final long FIRST_PAUSE_MS = 5;
  private static final long LONGEST_PAUSE_MS = 200;

  private static final Duration LONGEST_ATTEMPT = Duration.ofSeconds(5);

  private final InetSocketAddress address;
  private final Token token;
  private final Member member;
  private final boolean isOpened;
  private final String call;
  private final Deadline until;

  private String changed = ""; // end of the message if a third party changed a frame of an attempt
  private boolean isConnected;
  private boolean isLoopback; // true if the last attempt went to a loopback address

  /** The member's end of a connection. One thread at a time may receive, and one may send. */
  static final class Connection {
    private final SocketChannel socket;
    private final FrameChannel channel;
    private Duration silence = Duration.ZERO; // until the server has named it

    private Connection(SocketChannel socket) throws IOException {
      this.socket = socket;
      channel = new FrameChannel(Channels.newChannel(socket.socket().getInputStream()), socket);
    }

    Duration silence() {
      return silence;
    }

    /**
     * Waits for a frame, and returns its body.
     *
     * @throws SocketTimeoutException if no frame is complete at the deadline
     */
    ByteBuffer receive(Deadline until) throws IOException {
      ByteBuffer frame = channel.next();
      for (boolean isOver = false; frame == null; frame = channel.next()) {
        if (isOver) {
          throw new SocketTimeoutException();
        }
        isOver = until.isOver(); // data counts if it arrived before the deadline
        socket.socket().setSoTimeout(leftMs(until));
        if (!channel.fill()) {
          throw new EOFException("it closed the connection");
        }
      }
      return frame;
    }

    void send(byte[] body) throws IOException {
      channel.send(body);
      while (!channel.flush()) {
        // During a timed read, the channel writes only a part. Each call waits for room.
      }
    }

    void close() {
      Sockets.close(socket);
    }
  }

  /**
   * Creates a connector. If {@code isOpened}, the store was open before, and counts as lost if no
   * server listens now.
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
    for (; !until.isOver(); pause = Math.min(2 * pause, LONGEST_PAUSE_MS)) {
      try {
        return attempt();
      } catch (MalformedException e) {
        throw new InvalidArgumentException(
            call + ": the program that listens there is not a Windlass store: " + e.getMessage());
      } catch (SocketTimeoutException e) {
        if (until.isOver()) {
          break; // the reason of the attempt before says more
        }
        String what =
            isConnected ? "whoever listens there gave no answer for " : "no connection after ";
        why = what + Deadline.text(LONGEST_ATTEMPT);
      } catch (ConnectException e) {
        if (isOpened) {
          throw new PeerLostException(call + ": its owner has ended: " + e.getMessage());
        }
        why = e.getMessage();
      } catch (IOException e) {
        why = e.getMessage();
      }
      Waits.pause(call, Math.min(pause, leftMs(until)));
    }
    throw new DeadlineExceededException(
        call + ": no store there after " + Deadline.text(until.deadline()) + ": " + why + changed
            + "; does its owner run?"
            + (isLoopback
                ? " That address is another in each host: where ranks live on several, name one of"
                    + " its owner's host that all reach"
                : ""));
  }

  private Connection attempt() throws IOException {
    isConnected = false;
    boolean isLast = until.leftNs() <= LONGEST_ATTEMPT.toNanos();
    Deadline end = isLast ? until : Deadline.of(LONGEST_ATTEMPT);
    SocketChannel socket = SocketChannel.open();
    try {
      socket.setOption(StandardSocketOptions.TCP_NODELAY, true);
      InetSocketAddress known = Sockets.resolved(address);
      isLoopback = known.getAddress().isLoopbackAddress();
      socket.socket().connect(known, leftMs(end));
      if (socket.getLocalAddress().equals(socket.getRemoteAddress())) {
        // If no server listens, a socket whose own port happens to be the server's connects to
        // itself.
        throw new ConnectException("nobody listens there");
      }
      isConnected = true;
      Connection made = new Connection(socket);
      greet(made, end);
      return made;
    } catch (IOException | RuntimeException | Error e) {
      Sockets.close(socket);
      throw e;
    }
  }

  private void greet(Connection made, Deadline end) throws IOException {
    byte[] hello = Greeting.hello(member);
    made.send(hello);
    ByteBuffer challenge = receive(made, end, Wire.CHALLENGE);
    Greeting greeting =
        Greeting.answered(hello, token, Wire.bytes(challenge, challenge.remaining()));
    if (greeting == null) {
      sendLast(made, Wire.refused(Native.WL_RESOURCE, ""));
      throw new ResourceException(
          call + ": the store holds another token than this member; set WINDLASS_TOKEN_FILE to the"
              + " store's");
    }
    made.send(greeting.proof());
    made.channel.sealed(greeting.memberSeal(), greeting.serverSeal());
    try {
      beWelcomed(made, end);
    } catch (MalformedException e) {
      String why = "this member got " + e.getMessage();
      Log.warn(call + ": " + why);
      sendLast(made, Wire.leave(why));
      changed = "; an attempt before failed because " + why;
      throw new IOException(why);
    }
  }

  /**
   * Sends a request and waits for the reply. The reply shows that the peer is the server, and not a
   * relay that passed on only the greeting.
   */
  private void beWelcomed(Connection made, Deadline end) throws IOException {
    ByteBuffer welcome = receive(made, end, Wire.WELCOME).position(1);
    long silenceMs = Wire.read(welcome, ByteBuffer::getLong);
    if (silenceMs < 1) {
      throw new MalformedException("a silence of " + silenceMs + " ms");
    }
    made.silence = Duration.ofMillis(silenceMs);
    made.send(Wire.body(Wire.PING, Wire.NO_CALL));
    receive(made, end, Wire.DONE);
  }

  private static void sendLast(Connection made, byte[] body) {
    try {
      made.send(body);
    } catch (IOException e) {
      // The connection is broken.
    }
  }

  /** Returns the next frame, which must be of {@code kind}. Throws for a REFUSED frame. */
  private ByteBuffer receive(Connection made, Deadline end, byte kind) throws IOException {
    ByteBuffer frame = made.receive(end);
    if (frame.get(0) == Wire.REFUSED) {
      throw Wire.read(frame.position(1), this::refusal);
    }
    if (frame.get(0) != kind) {
      throw new MalformedException("a frame of kind " + frame.get(0));
    }
    return frame;
  }

  private RuntimeException refusal(ByteBuffer frame) throws MalformedException {
    int code = frame.getInt();
    String why = call + ": refused: " + Texts.printable(Wire.text(frame, Wire.REFUSAL));
    return switch (code) {
      case Native.WL_MISMATCH -> new MismatchException(why);
      case Native.WL_RESOURCE -> new ResourceException(why);
      default -> throw new MalformedException("a refusal of code " + code);
    };
  }

  private static int leftMs(Deadline deadline) {
    long left = TimeUnit.NANOSECONDS.toMillis(deadline.leftNs()) + 1;
    return (int) Math.min(Integer.MAX_VALUE, left);
  }
}
