// SPDX-License-Identifier: Apache-2.0
package org.windlass.internal.store;

import java.net.InetSocketAddress;
import java.net.UnknownHostException;
import java.time.Duration;
import org.jspecify.annotations.Nullable;
import org.windlass.internal.Deadline;

/** Operations on addresses, sockets and threads for both ends of a connection. */
public final class Sockets {
  private static final Duration JOIN = Duration.ofSeconds(10);

  private Sockets() {}

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

  static void close(@Nullable AutoCloseable resource) {
    try {
      if (resource != null) {
        resource.close();
      }
    } catch (Exception e) {
      // The resource is closed either way.
    }
  }

  /** Creates a daemon thread that inherits nothing from the caller's thread. */
  public static Thread daemon(Runnable task, String name) {
    Thread thread = new Thread(null, task, name, 0, false);
    thread.setDaemon(true);
    thread.setContextClassLoader(null);
    return thread;
  }

  /** Waits until {@code thread} ends, at most for {@link #JOIN}. A caller's interrupt stays set. */
  static void join(Thread thread) {
    boolean interrupted = false;
    Deadline until = Deadline.of(JOIN);
    while (thread.isAlive() && !until.isOver()) {
      try {
        thread.join(1 + until.left().toMillis());
      } catch (InterruptedException e) {
        interrupted = true;
      }
    }
    if (interrupted) {
      Thread.currentThread().interrupt();
    }
  }
}
