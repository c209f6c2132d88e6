// SPDX-License-Identifier: Apache-2.0
package org.windlass.internal.store;

import java.time.Duration;
import java.util.ArrayList;
import java.util.List;

/** A store under test, and its members, whom closing this closes. */
public final class TestStore implements AutoCloseable {
  public static final Duration LONG = Duration.ofSeconds(60);
  public static final String JOB = "test";
  public static final String LIBRARY = "1.2.3";

  /** The stores that keep one contract. */
  public enum Kind {
    SOCKET
  }

  private final StoreServer server;
  private final Token token = Token.random();
  private final List<Store> members = new ArrayList<>();

  public TestStore(Kind kind) {
    this(kind, StoreServer.Bounds.defaults());
  }

  /** Bounds are those of a socket's server. */
  public TestStore(Kind kind, StoreServer.Bounds bounds) {
    server = StoreServer.open(StoreServer.loopback(), token, LIBRARY, bounds);
  }

  public StoreServer server() {
    return server;
  }

  public Token token() {
    return token;
  }

  /** One more member. */
  public Store join() {
    return join(Member.observer(JOB, LIBRARY));
  }

  public SocketStore join(Member member) {
    return join(member, token, LONG);
  }

  public SocketStore join(Member member, Token shown, Duration deadline) {
    return added(SocketStore.connect(server.address(), shown, member, deadline));
  }

  private synchronized SocketStore added(SocketStore store) {
    members.add(store);
    return store;
  }

  public static Member rank(int rank, int size) {
    return new Member(JOB, rank, size, LIBRARY);
  }

  @Override
  public void close() {
    members.forEach(Store::close);
    server.close();
  }
}
