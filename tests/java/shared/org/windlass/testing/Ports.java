// SPDX-License-Identifier: Apache-2.0
package org.windlass.testing;

import java.io.IOException;
import java.net.BindException;
import java.net.InetAddress;
import java.net.ServerSocket;
import java.util.concurrent.ThreadLocalRandom;
import java.util.concurrent.atomic.AtomicInteger;

/**
 * Ports of loopback for those who listen later. They lie below what the system gives to who asks
 * for any, and no other JVM of the same tests takes them.
 */
public final class Ports {
  private static final int FIRST = 20_000;
  private static final int COUNT = 12_000;

  /** JVMs among which they are dealt out. */
  private static final int FORKS = 4;

  /** The number of this one, from 1 on. */
  private static final int FORK = Integer.getInteger("surefire.forkNumber", 1);

  private static final AtomicInteger NEXT =
      new AtomicInteger(ThreadLocalRandom.current().nextInt(COUNT / FORKS));

  private Ports() {}

  /** One where nobody listens, and that this JVM has not had for long. */
  public static int free() throws IOException {
    for (int i = 0; i < COUNT / FORKS; i++) {
      int turn = Math.floorMod(NEXT.getAndIncrement(), COUNT / FORKS);
      int port = FIRST + turn * FORKS + FORK % FORKS;
      try (ServerSocket socket = new ServerSocket(port, 1, InetAddress.getLoopbackAddress())) {
        return socket.getLocalPort();
      } catch (BindException taken) {
        // Another program listens there.
      }
    }
    throw new IOException("no port from " + FIRST + " to " + (FIRST + COUNT - 1) + " is free");
  }
}
