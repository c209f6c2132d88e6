// SPDX-License-Identifier: Apache-2.0
package org.windlass.internal.store;

import java.io.IOException;
import java.io.InputStream;
import java.io.OutputStream;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.net.ServerSocket;
import java.net.Socket;
import java.util.List;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.atomic.AtomicInteger;

/** A relay to a server that changes one bit of the first connection, and passes on all else. */
final class TamperingRelay implements AutoCloseable {
  /** A way through the relay. */
  enum Direction {
    TO_SERVER,
    TO_MEMBER
  }

  private final ServerSocket listener = new ServerSocket(0, 8, InetAddress.getLoopbackAddress());
  private final InetSocketAddress server;
  private final Direction direction;
  private final int at;
  private final List<Socket> sockets = new CopyOnWriteArrayList<>();
  private final AtomicInteger connections = new AtomicInteger();

  /** @param at the byte of the first connection in that direction of which a bit changes */
  TamperingRelay(InetSocketAddress server, Direction direction, int at) throws IOException {
    this.server = server;
    this.direction = direction;
    this.at = at;
    start(this::accept);
  }

  private static void start(Runnable task) {
    Thread thread = new Thread(task, "relay");
    thread.setDaemon(true);
    thread.start();
  }

  InetSocketAddress address() {
    return (InetSocketAddress) listener.getLocalSocketAddress();
  }

  int connections() {
    return connections.get();
  }

  private void accept() {
    try {
      while (true) {
        Socket member = listener.accept();
        Socket up = new Socket(server.getAddress(), server.getPort());
        sockets.addAll(List.of(member, up));
        boolean isFirst = connections.getAndIncrement() == 0;
        start(() -> pass(member, up, isFirst && direction == Direction.TO_SERVER));
        start(() -> pass(up, member, isFirst && direction == Direction.TO_MEMBER));
      }
    } catch (IOException e) {
      // It was closed.
    }
  }

  private void pass(Socket from, Socket to, boolean tampers) {
    try (from;
        to) {
      InputStream in = from.getInputStream();
      OutputStream out = to.getOutputStream();
      byte[] bytes = new byte[4096];
      int passed = 0;
      for (int count = in.read(bytes); count > 0; count = in.read(bytes)) {
        if (tampers && passed <= at && at < passed + count) {
          bytes[at - passed] ^= (byte) (1 << at % 8);
        }
        passed += count;
        out.write(bytes, 0, count);
      }
    } catch (IOException e) {
      // One side has closed it.
    }
  }

  @Override
  public void close() throws IOException {
    listener.close();
    for (Socket socket : sockets) {
      socket.close();
    }
  }
}
