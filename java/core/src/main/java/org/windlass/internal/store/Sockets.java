// SPDX-License-Identifier: Apache-2.0
package org.windlass.internal.store;

import java.net.InetSocketAddress;
import java.net.UnknownHostException;
import java.util.concurrent.TimeUnit;

/** What both ends of a connection do with their addresses, sockets and threads. */
final class Sockets {
  private Sockets() {}

  /** Such as {@code 127.0.0.1:4711}. */
  static String name(InetSocketAddress address) {
    String host =
        address.isUnresolved() ? address.getHostString() : address.getAddress().getHostAddress();
    return (host.indexOf(':') < 0 ? host : "[" + host + "]") + ":" + address.getPort();
  }

  /** {@code address} with its host looked up, which takes as long as the system's resolver. */
  static InetSocketAddress resolved(InetSocketAddress address) throws UnknownHostException {
    if (!address.isUnresolved()) {
      return address;
    }
    InetSocketAddress found = new InetSocketAddress(address.getHostString(), address.getPort());
    if (found.isUnresolved()) {
      throw new UnknownHostException(
          "the host " + address.getHostString() + " has no known address");
    }
    return found;
  }

  /** Closes what may be null, whatever that says. */
  static void close(AutoCloseable resource) {
    try {
      if (resource != null) {
        resource.close();
      }
    } catch (Exception e) {
      // It is gone either way.
    }
  }

  /** Waits for the end of {@code thread}; an interrupt meanwhile stays set. */
  static void join(Thread thread, long millis) {
    boolean interrupted = false;
    long end = System.nanoTime() + TimeUnit.MILLISECONDS.toNanos(millis);
    for (long left = millis; left > 0 && thread.isAlive(); ) {
      try {
        thread.join(left);
      } catch (InterruptedException e) {
        interrupted = true;
      }
      left = TimeUnit.NANOSECONDS.toMillis(end - System.nanoTime());
    }
    if (interrupted) {
      Thread.currentThread().interrupt();
    }
  }
}
