// SPDX-License-Identifier: Apache-2.0
package org.windlass.internal.store;

import java.io.IOException;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.net.StandardSocketOptions;
import java.nio.channels.SelectionKey;
import java.nio.channels.Selector;
import java.nio.channels.ServerSocketChannel;
import java.nio.channels.SocketChannel;
import java.time.Duration;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.Iterator;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.Set;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.locks.LockSupport;
import org.jspecify.annotations.Nullable;
import org.windlass.error.MismatchException;
import org.windlass.error.ResourceException;
import org.windlass.internal.Deadline;
import org.windlass.internal.Log;

/**
 * Serves a store. Members reach it through a {@link SocketStore}. One daemon thread serves all
 * connections, and no connection can make it wait.
 *
 * <p>The peer of a connection that has not proved the token is called a stranger. Its time and the
 * size of its frames are limited. If there are too many strangers, the server drops the oldest one.
 * A member is identified by its job and rank. The server refuses a second connection of the same
 * rank. The server drops a member that is silent for longer than {@link Bounds#silence}, and logs
 * every refusal.
 *
 * <p>The token is proved and never sent. Later frames carry a {@link Seal}. They are not encrypted:
 * anyone who can read the traffic can read the values.
 */
public final class StoreServer implements AutoCloseable {
  private static final int ACCEPTS = 32;
  private static final int WAITING_CONNECTIONS = 1024;
  private static final long PAUSE_MS = 100;
  private static final long LONGEST_TICK_NS = 500_000_000;
  private static final Duration LINGER = Duration.ofSeconds(2);
  private static final long LINGER_TICK_MS = 2;

  final Token token;
  final String library;
  final Bounds bounds;

  private final long tickNs;

  final Table table = new Table();

  private final Selector selector;
  private final ServerSocketChannel listener;
  private final SelectionKey listening;
  private final InetSocketAddress address;
  final RefusalLog log;
  private final Thread thread;

  private final Set<Session> strangers = new LinkedHashSet<>();

  private final Set<Session> members = new LinkedHashSet<>();

  /** Sessions of ranks, keyed by {@link #place}. Observers are not in the map. */
  private final Map<String, Session> ranks = new HashMap<>();

  final Set<Session> dirty = new LinkedHashSet<>();

  private long lookedNs = System.nanoTime();
  private long pausedNs; // time at which descriptors ran out; 0 if the server accepts connections
  private volatile boolean closing;

  /**
   * Limits of connections.
   *
   * @param strangers largest number of connections that have not proved the token
   * @param members largest number of members
   * @param proof time that a stranger has to prove the token
   * @param silence time that a member may be silent; a member's {@link SocketStore} sends a PING
   *     before this time is over
   */
  public record Bounds(int strangers, int members, Duration proof, Duration silence) {
    private static final Duration LONGEST = Duration.ofDays(1);

    public Bounds {
      if (strangers < 1 || members < 1 || isNone(proof) || isNone(silence)) {
        throw new IllegalArgumentException("a bound is 1 or more, of time 1 ms to " + LONGEST);
      }
    }

    private static boolean isNone(Duration time) {
      return time.compareTo(Duration.ofMillis(1)) < 0 || time.compareTo(LONGEST) > 0;
    }

    /**
     * Returns the default limits: 512 strangers for 10 s each, 8,192 members, and 60 s of silence.
     */
    public static Bounds defaults() {
      return new Bounds(512, 8192, Duration.ofSeconds(10), Duration.ofSeconds(60));
    }
  }

  public static InetSocketAddress loopback() {
    return new InetSocketAddress(InetAddress.getLoopbackAddress(), 0);
  }

  /**
   * Opens a store for members that prove {@code token}.
   *
   * @param address its host may be a name, and port 0 stands for any free port
   * @param library the version of this library, as errors name it
   * @throws WindlassException Resource if the address can't be used
   */
  public static StoreServer open(
      InetSocketAddress address, Token token, String library, Bounds bounds) {
    Member.observer("the server", library); // checks it
    Selector selector = null;
    ServerSocketChannel listener = null;
    try {
      selector = Selector.open();
      listener = ServerSocketChannel.open();
      listener.bind(Sockets.resolved(address), WAITING_CONNECTIONS);
      listener.configureBlocking(false);
      StoreServer server = new StoreServer(selector, listener, token, library, bounds);
      server.thread.start();
      return server;
    } catch (IOException | OutOfMemoryError e) {
      Sockets.close(listener);
      Sockets.close(selector);
      throw new ResourceException(
          "no store can be opened at " + Sockets.name(address) + ": " + e.getMessage(), e);
    }
  }

  private StoreServer(
      Selector selector, ServerSocketChannel listener, Token token, String library, Bounds bounds)
      throws IOException {
    this.selector = selector;
    this.listener = listener;
    this.token = token;
    this.library = library;
    this.bounds = bounds;
    long shortestNs = Math.min(bounds.proof().toNanos(), bounds.silence().toNanos());
    this.tickNs = Math.max(1_000_000, Math.min(LONGEST_TICK_NS, shortestNs / 8));
    this.listening = listener.register(selector, SelectionKey.OP_ACCEPT);
    this.address = (InetSocketAddress) listener.getLocalAddress();
    this.log = new RefusalLog(Sockets.name(address));
    this.thread = Sockets.daemon(this::run, "windlass-store-" + address.getPort());
  }

  public InetSocketAddress address() {
    return address;
  }

  /** Returns the address as settings write it, such as {@code 127.0.0.1:4711}. */
  public String name() {
    return Sockets.name(address);
  }

  /** Ends every connection. Calls that wait fail, and held keys disappear. Idempotent. */
  @Override
  public void close() {
    closing = true;
    selector.wakeup();
    Sockets.join(thread);
  }

  /**
   * Makes a stranger that has proved the token a member. If another session of the same rank has
   * not sent a second request yet, ends that session, since a relay may hold its connection.
   *
   * @throws WindlassException if the stranger can't be a member
   */
  void admit(Session session) {
    Member member = Objects.requireNonNull(session.member);
    String place = place(member);
    Session before = ranks.get(place);
    if (before != null && !before.hasSpoken()) {
      drop(before, "it sent nothing, and another connection arrived for its rank");
      before = null;
    }
    if (members.size() >= bounds.members()) {
      throw new ResourceException(
          "the store has " + members.size() + " members, the most that it accepts");
    }
    if (before != null) {
      throw new MismatchException(
          member + " is connected already, from " + before.peer() + "; two members can't have the"
              + " same rank");
    }
    strangers.remove(session);
    members.add(session);
    if (!member.isObserver()) {
      ranks.put(place, session);
    }
  }

  private static String place(Member member) {
    return member.rank() + " of " + member.job();
  }

  private void run() {
    try {
      while (!closing) {
        serve(timeoutMs());
      }
      linger();
    } catch (IOException | RuntimeException | OutOfMemoryError e) {
      Log.error("The store at " + Sockets.name(address) + " ends.", e);
    } finally {
      strangers.forEach(Session::end);
      members.forEach(Session::end);
      log.tellRest();
      Sockets.close(listener);
      Sockets.close(selector);
    }
  }

  private void serve(long limitMs) throws IOException {
    selector.select(limitMs);
    Set<SelectionKey> ready = selector.selectedKeys();
    boolean accepts = ready.remove(listening);
    for (SelectionKey key : ready) {
      receive((Session) key.attachment());
    }
    ready.clear();
    send();
    if (accepts && !closing) {
      accept();
    }
    endOverdue();
    send();
  }

  private long timeoutMs() {
    boolean isIdle = strangers.isEmpty() && members.isEmpty();
    return pausedNs != 0 ? PAUSE_MS : isIdle ? 0 : tickNs / 1_000_000;
  }

  /** Waits until members that hold keys have received the queued frames and disconnected. */
  private void linger() throws IOException {
    Sockets.close(listener);
    selector.selectNow(); // gives the port back
    Deadline until = Deadline.of(LINGER);
    List<Session> last = new ArrayList<>(members);
    last.removeIf(session -> !session.isHolder);
    while (!last.isEmpty() && !until.isOver()) {
      last.removeIf(session -> !session.drain());
      LockSupport.parkNanos(TimeUnit.MILLISECONDS.toNanos(LINGER_TICK_MS));
    }
  }

  @FunctionalInterface
  private interface Work {
    boolean of(Session session) throws IOException;
  }

  /**
   * Runs a part of a session's work. Drops the session if this throws, or returns false; in the
   * second case, logs {@code why}.
   */
  private void work(Session session, Work work, @Nullable String why) {
    if (!members.contains(session) && !strangers.contains(session)) {
      return;
    }
    try {
      if (!work.of(session)) {
        drop(session, why);
      }
    } catch (IOException | RuntimeException | OutOfMemoryError e) {
      drop(session, reason(session, e));
    }
  }

  private void receive(Session session) {
    dirty.add(session);
    work(
        session,
        Session::receive,
        session.isAdmitted ? null : "it left before it had shown the token");
  }

  /** Writes queued frames. A request may queue more on other sessions meanwhile. */
  private void send() {
    while (!dirty.isEmpty()) {
      Session session = dirty.iterator().next();
      dirty.remove(session);
      work(session, Session::send, null);
    }
  }

  private void accept() {
    for (int i = 0; i < ACCEPTS; i++) {
      SocketChannel socket = null;
      try {
        socket = listener.accept();
        if (socket == null) {
          return;
        }
        if (strangers.size() >= bounds.strangers()) {
          dropOldest("as many others came as there is room for");
        }
        socket.configureBlocking(false);
        socket.setOption(StandardSocketOptions.TCP_NODELAY, true);
        SelectionKey key = socket.register(selector, SelectionKey.OP_READ);
        Session session = new Session(this, socket, key);
        key.attach(session);
        strangers.add(session);
      } catch (IOException | RuntimeException | OutOfMemoryError e) {
        Sockets.close(socket);
        if (socket == null) {
          makeRoom("no connection can be taken: " + e);
          return;
        }
      }
    }
  }

  /**
   * Drops half of the strangers to free file descriptors. If there are no strangers, stops
   * accepting connections for a while.
   */
  private void makeRoom(String why) {
    if (strangers.isEmpty()) {
      pausedNs = System.nanoTime();
      listening.interestOps(0);
    }
    for (int i = strangers.size() / 2; i >= 0; i--) {
      dropOldest(why);
    }
  }

  private void dropOldest(String why) {
    Iterator<Session> oldest = strangers.iterator();
    if (oldest.hasNext()) {
      drop(oldest.next(), why);
    }
  }

  private void endOverdue() {
    long now = System.nanoTime();
    if (pausedNs != 0 && now - pausedNs >= TimeUnit.MILLISECONDS.toNanos(PAUSE_MS)) {
      pausedNs = 0;
      listening.interestOps(SelectionKey.OP_ACCEPT);
    }
    if (now - lookedNs < tickNs) {
      return;
    }
    lookedNs = now;
    dropSilent(strangers, now, bounds.proof(), "it had not shown the token after ");
    dropSilent(members, now, bounds.silence(), "it has said nothing for ");
  }

  private void dropSilent(Set<Session> sessions, long now, Duration most, String why) {
    for (Session session : List.copyOf(sessions)) {
      if (now - session.heardNs > most.toNanos()) {
        drop(session, why + Deadline.text(most));
      }
    }
  }

  private void drop(Session session, @Nullable String why) {
    if (why != null) {
      log.warn(session.peer(), why);
    }
    strangers.remove(session);
    if (members.remove(session)) {
      ranks.remove(place(Objects.requireNonNull(session.member)), session);
    }
    session.end();
  }

  /** Returns the reason to log. Null if a member's connection broke, which needs no log entry. */
  private static @Nullable String reason(Session session, Throwable e) {
    if (e instanceof MalformedException) {
      return "it sent " + e.getMessage();
    }
    return session.isAdmitted && e instanceof IOException ? null : e.toString();
  }
}
