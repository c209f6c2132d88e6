// SPDX-License-Identifier: Apache-2.0
package org.windlass.internal.store;

import java.io.DataInputStream;
import java.io.IOException;
import java.net.InetSocketAddress;
import java.net.Socket;
import java.net.SocketTimeoutException;
import java.nio.ByteBuffer;

/** A connection to a store's server that says what a test wants it to. */
final class RawConnection implements AutoCloseable {
  private final Socket socket = new Socket();
  private final DataInputStream in;

  RawConnection(InetSocketAddress address) throws IOException {
    socket.connect(address, 30_000);
    socket.setSoTimeout(30_000);
    in = new DataInputStream(socket.getInputStream());
  }

  /** One that has shown the token. */
  static RawConnection member(InetSocketAddress address, Token token, Member member)
      throws IOException {
    RawConnection connection = new RawConnection(address);
    byte[] hello = Greeting.hello(member);
    connection.sendFrame(hello);
    ByteBuffer proof = Greeting.answer(token, hello, connection.frame());
    connection.send(proof.array());
    byte[] welcome = connection.frame();
    if (welcome[0] != Wire.WELCOME) {
      connection.close();
      throw new IOException("not welcome: kind " + welcome[0]);
    }
    return connection;
  }

  void send(byte[] bytes) throws IOException {
    socket.getOutputStream().write(bytes);
  }

  void sendFrame(byte[] body) throws IOException {
    send(Wire.frame(body.length).put(body).array());
  }

  /** The body of the next frame. */
  byte[] frame() throws IOException {
    byte[] body = new byte[in.readInt()];
    in.readFully(body);
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
