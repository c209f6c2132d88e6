// SPDX-License-Identifier: Apache-2.0
package org.windlass.internal.store;

import java.io.DataInputStream;
import java.io.IOException;
import java.net.InetSocketAddress;
import java.net.ServerSocket;
import java.net.Socket;
import java.net.SocketTimeoutException;
import java.nio.ByteBuffer;

/** A connection to a store's server that says what a test wants it to. */
final class RawConnection implements AutoCloseable {
  private final Socket socket;
  private final DataInputStream in;

  /** Null until it has shown the token. */
  private Seal sent;

  private Seal received;

  RawConnection(InetSocketAddress address) throws IOException {
    this(new Socket(address.getAddress(), address.getPort()));
  }

  private RawConnection(Socket socket) throws IOException {
    this.socket = socket;
    socket.setSoTimeout(30_000);
    in = new DataInputStream(socket.getInputStream());
  }

  /** One that has shown the token. */
  static RawConnection member(InetSocketAddress address, Token token, Member member)
      throws IOException {
    RawConnection connection = new RawConnection(address);
    byte[] hello = Greeting.hello(member);
    connection.sendFrame(hello);
    Greeting greeting = Greeting.answered(hello, token, connection.frame());
    connection.sendFrame(greeting.proof());
    connection.sent = greeting.memberSeal();
    connection.received = greeting.serverSeal();
    byte[] welcome = connection.frame();
    if (welcome[0] != Wire.WELCOME) {
      connection.close();
      throw new IOException("not welcome: kind " + welcome[0]);
    }
    return connection;
  }

  /** The next to come. */
  static RawConnection accept(ServerSocket listener) throws IOException {
    return new RawConnection(listener.accept());
  }

  /** The server's end of the connection of the next to come who greets. */
  static RawConnection server(ServerSocket listener, Token token, long silenceMs)
      throws IOException {
    while (true) {
      RawConnection connection = accept(listener);
      try {
        byte[] hello = connection.frame();
        Greeting greeting = Greeting.answering(hello, token, TestStore.LIBRARY);
        connection.sendFrame(greeting.wholeChallenge());
        connection.frame();
        connection.sent = greeting.serverSeal();
        connection.received = greeting.memberSeal();
        connection.sendFrame(Greeting.welcome(silenceMs));
        connection.frame(); // the PING with which a member begins
        connection.sendFrame(Wire.body(Wire.DONE, Wire.NO_CALL));
        return connection;
      } catch (IOException e) {
        connection.close(); // It came before, and has left.
      }
    }
  }

  boolean isOpen() {
    return socket.isConnected() && !socket.isClosed();
  }

  void send(byte[] bytes) throws IOException {
    socket.getOutputStream().write(bytes);
  }

  void sendFrame(byte[] body) throws IOException {
    send(sealed(framed(body)));
  }

  /** A body behind its length. */
  static byte[] framed(byte[] body) {
    return ByteBuffer.allocate(Integer.BYTES + body.length).putInt(body.length).put(body).array();
  }

  /** A frame as it goes over the wire, as the next one of this side. */
  byte[] sealed(byte[] frame) {
    if (sent == null) {
      return frame;
    }
    byte[] seal = sent.next(ByteBuffer.wrap(frame));
    return ByteBuffer.allocate(frame.length + seal.length).put(frame).put(seal).array();
  }

  /** The same, which the other side may have closed. */
  void sendIfOpen(byte[] bytes) {
    try {
      send(bytes);
    } catch (IOException e) {
      // It has ended.
    }
  }

  /** The next frame with its length, and without a seal. */
  byte[] wholeFrame() throws IOException {
    return framed(frame());
  }

  /** The next frame with its length and its seal, which nobody checks. */
  byte[] sealedFrame() throws IOException {
    int length = in.readInt();
    byte[] rest = in.readNBytes(length + Seal.BYTES);
    return ByteBuffer.allocate(Integer.BYTES + rest.length).putInt(length).put(rest).array();
  }

  /** The body of the next frame. */
  byte[] frame() throws IOException {
    byte[] body = new byte[in.readInt()];
    in.readFully(body);
    if (received != null) {
      byte[] seal = in.readNBytes(Seal.BYTES);
      received.require(ByteBuffer.wrap(framed(body)), ByteBuffer.wrap(seal));
    }
    return body;
  }

  /** The text of the refusal that comes next, before the end. */
  String refusal() throws IOException {
    ByteBuffer frame = ByteBuffer.wrap(frame());
    if (frame.get() != Wire.REFUSED) {
      throw new IOException("no refusal");
    }
    frame.getInt();
    String text = Wire.text(frame, Wire.REFUSAL);
    if (!ended()) {
      throw new IOException("it goes on after a refusal");
    }
    return text;
  }

  /** Whether the server ends the connection, within some time, after no matter what. */
  boolean ended() {
    try {
      while (in.read() >= 0) {
        // It has its last words.
      }
      return true;
    } catch (SocketTimeoutException e) {
      return false;
    } catch (IOException e) {
      return true; // reset
    }
  }

  @Override
  public void close() {
    try {
      socket.close();
    } catch (IOException e) {
      // It is gone either way.
    }
  }
}
