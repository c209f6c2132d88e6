// SPDX-License-Identifier: Apache-2.0
package org.windlass.testing;

import java.io.IOException;
import java.net.BindException;
import java.net.InetAddress;
import java.net.ServerSocket;
import java.nio.channels.FileChannel;
import java.nio.channels.OverlappingFileLockException;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.util.concurrent.ThreadLocalRandom;
import java.util.concurrent.atomic.AtomicInteger;

/**
 * Ports of loopback for those who listen later. They lie below what the system gives to who asks
 * for any, and no other JVM of tests takes them as long as this one lives.
 */
public final class Ports {
  private static final int FIRST = 20_000;
  private static final int COUNT = 12_000;

  private static final AtomicInteger NEXT =
      new AtomicInteger(ThreadLocalRandom.current().nextInt(COUNT));

  /** A file of which each JVM locks the bytes that are numbered as its ports are. */
  private static FileChannel taken;

  private Ports() {}

  /** One where nobody listens, and that this JVM has not had for long. */
  public static synchronized int free() throws IOException {
    if (taken == null) {
      String name = "windlass-test-ports-" + System.getProperty("user.name");
      taken =
          FileChannel.open(
              Path.of(System.getProperty("java.io.tmpdir"), name),
              StandardOpenOption.CREATE,
              StandardOpenOption.WRITE);
    }
    for (int i = 0; i < COUNT; i++) {
      int port = FIRST + Math.floorMod(NEXT.getAndIncrement(), COUNT);
      if (!take(port)) {
        continue;
      }
      try (ServerSocket socket = new ServerSocket(port, 1, InetAddress.getLoopbackAddress())) {
        return socket.getLocalPort();
      } catch (BindException other) {
        // Another program listens there.
      }
    }
    throw new IOException("no port from " + FIRST + " to " + (FIRST + COUNT - 1) + " is free");
  }

  private static boolean take(int port) throws IOException {
    try {
      return taken.tryLock(port, 1, false) != null;
    } catch (OverlappingFileLockException ours) {
      return true;
    }
  }
}
