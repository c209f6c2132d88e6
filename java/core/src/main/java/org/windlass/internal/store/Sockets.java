// SPDX-License-Identifier: Apache-2.0
package org.windlass.internal.store;

import java.net.InetSocketAddress;
import java.net.UnknownHostException;
import java.util.concurrent.TimeUnit;

/** Operations on addresses, sockets and threads that both ends of a connection need. */
final class Sockets {
  private Sockets() {}

  /** Returns an address as text, such as {@code 127.0.0.1:4711}. */
  static String name(InetSocketAddress address) {
    String host =
        address.isUnresolved() ? address.getHostString() : address.getAddress().getHostAddress();
    return (host.indexOf(':') < 0 ? host : "[" + host + "]") + ":" + address.getPort();
  }

  /** Returns {@code address} with its host looked up, by the system's resolver. */
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

  /** Closes a resource, which may be null, and ignores failures. */
  static void close(AutoCloseable resource) {
    try {
      if (resource != null) {
        resource.close();
      }
    } catch (Exception e) {
      // The resource is closed either way.
    }
  }

  /** Waits until {@code thread} ends. An interrupt of the caller stays set. */
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
