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
  public static int free() throws IOException {
    return free(1);
  }

  /** The first of so many in a row, likewise. */
  public static synchronized int free(int count) throws IOException {
    if (taken == null) {
      String name = "windlass-test-ports-" + System.getProperty("user.name");
      taken =
          FileChannel.open(
              Path.of(System.getProperty("java.io.tmpdir"), name),
              StandardOpenOption.CREATE,
              StandardOpenOption.WRITE);
    }
    int inRow = 0;
    for (int i = 0; i < COUNT; i++) {
      int port = FIRST + Math.floorMod(NEXT.getAndIncrement(), COUNT);
      inRow = take(port) ? port == FIRST ? 1 : inRow + 1 : 0;
      if (inRow == count) {
        return port - count + 1;
      }
    }
    throw new IOException("no port from " + FIRST + " to " + (FIRST + COUNT - 1) + " is free");
  }

  private static boolean take(int port) throws IOException {
    try {
      if (taken.tryLock(port, 1, false) == null) {
        return false;
      }
    } catch (OverlappingFileLockException ours) {
      // This JVM had it before.
    }
    try {
      new ServerSocket(port, 1, InetAddress.getLoopbackAddress()).close();
      return true;
    } catch (BindException other) {
      return false; // Another program listens there.
    }
  }
}
