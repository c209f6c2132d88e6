// SPDX-License-Identifier: Apache-2.0
package org.windlass.internal.store;

import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.net.InetSocketAddress;
import java.nio.BufferUnderflowException;
import java.nio.ByteBuffer;
import java.nio.channels.SelectionKey;
import java.nio.channels.Selector;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.Optional;
import java.util.Queue;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.function.Consumer;
import org.windlass.error.InternalException;
import org.windlass.error.ResourceException;
import org.windlass.internal.Deadline;
import org.windlass.internal.Log;
import org.windlass.internal.Native;

/**
 * A member's connection to a {@link StoreServer}. One daemon thread reads and writes it, so that a
 * server that reads nothing delays no caller past its deadline. If the connection breaks, or is
 * silent for too long, all calls fail with PeerLost. It never connects again by itself.
 */
public final class SocketStore implements Store {
  private static final long CLOSE_MS = 10_000;

  /** Time that the server has after the deadline of a round to say why it failed. */
  private static final long LAST_WORD_MS = 2000;

  private final String address;
  private final Selector selector;
  private final SelectionKey key;
  private final FrameChannel channel;
  private final long silenceNs;
  private final Thread thread;

  private final AtomicInteger ids = new AtomicInteger(Wire.NO_CALL);
  private final Map<Integer, Reply> replies = new ConcurrentHashMap<>();

  /** Requests that the thread has not taken yet. */
  private final Queue<ByteBuffer> requests = new ConcurrentLinkedQueue<>();

  private volatile boolean closing;

  /** Reason why the connection ended; null before. */
  private volatile Refusal end;

  /**
   * Connects. If nobody listens yet, waits until somebody does.
   *
   * @param address its host may be a name, which each attempt looks up
   * @throws WindlassException Mismatch if the server has another version of the protocol, or the
   *     rank is connected already; Resource if the server has another token or is full;
   *     InvalidArgument if no store listens there; Timeout; Aborted
   */
  public static SocketStore connect(
      InetSocketAddress address, Token token, Member member, Duration deadline) {
    return connected(address, token, member, false, deadline);
  }

  /** Connects to a store that is open. PeerLost if nobody listens. */
  public static SocketStore connectToOpen(
      InetSocketAddress address, Token token, Member member, Duration deadline) {
    return connected(address, token, member, true, deadline);
  }

  private static SocketStore connected(
      InetSocketAddress address, Token token, Member member, boolean isOpened, Duration deadline) {
    Objects.requireNonNull(token, "token");
    Objects.requireNonNull(member, "member");
    Connector.Connection made =
        new Connector(address, token, member, isOpened, deadline).connect();
    SocketStore store = new SocketStore(Sockets.name(address), made);
    try {
      store.thread.start();
    } catch (OutOfMemoryError e) {
      store.finish(new Refusal(Native.WL_CLOSED, Waits.CLOSED));
      throw new ResourceException(
          "no thread for the connection to the store at " + store.address, e);
    }
    return store;
  }

  private SocketStore(String address, Connector.Connection made) {
    this.address = address;
    this.selector = made.selector();
    this.key = made.key();
    this.channel = made.channel();
    this.silenceNs = TimeUnit.MILLISECONDS.toNanos(made.silenceMs());
    this.thread = new Thread(null, this::run, "windlass-store-of-" + address, 0, false);
    thread.setDaemon(true);
    thread.setContextClassLoader(null);
  }

  @Override
  public String address() {
    return address;
  }

  @Override
  public Duration silence() {
    return Duration.ofNanos(silenceNs);
  }

  @Override
  public void set(String key, byte[] value, Duration deadline) {
    byte[] name = Limits.key(key);
    Objects.requireNonNull(value, "value");
    Limits.value(value);
    ask(
        "set " + key,
        deadline,
        request(Wire.SET, name, Wire.arrayBytes(value), f -> Wire.putArray(f, value)),
        reply -> null);
  }

  @Override
  public Optional<byte[]> get(String key, Duration deadline) {
    byte[] name = Limits.key(key);
    ByteBuffer request = request(Wire.GET, name, 0, f -> {});
    return ask("get " + key, deadline, request, reply -> Optional.ofNullable(Wire.array(reply)));
  }

  @Override
  public Optional<byte[]> awaitOther(String key, byte[] seen, Duration deadline) {
    byte[] name = Limits.key(key);
    Limits.value(seen);
    return ask(
        "await " + key,
        Waits.lacking(seen),
        deadline,
        request(Wire.AWAIT, name, Wire.arrayBytes(seen), f -> Wire.putArray(f, seen)),
        reply -> Optional.ofNullable(Wire.array(reply)));
  }

  @Override
  public boolean compareAndSet(String key, byte[] expected, byte[] value, Duration deadline) {
    byte[] name = Limits.key(key);
    Limits.value(expected);
    Limits.value(value);
    return ask(
        "compare and set " + key,
        deadline,
        request(
            Wire.CAS,
            name,
            Wire.arrayBytes(expected) + Wire.arrayBytes(value),
            f -> {
              Wire.putArray(f, expected);
              Wire.putArray(f, value);
            }),
        reply -> reply.get() != 0);
  }

  @Override
  public boolean hold(String key, byte[] value, Duration deadline) {
    byte[] name = Limits.key(key);
    Objects.requireNonNull(value, "value");
    Limits.value(value);
    return ask(
        "hold " + key,
        deadline,
        request(Wire.HOLD, name, Wire.arrayBytes(value), f -> Wire.putArray(f, value)),
        reply -> reply.get() != 0);
  }

  @Override
  public List<String> keys(String prefix, Duration deadline) {
    byte[] name = Limits.prefix(prefix);
    ByteBuffer request = request(Wire.KEYS, name, 0, f -> {});
    return ask("keys " + prefix, deadline, request, Wire::keys);
  }

  @Override
  public List<byte[]> gather(Round round, Runnable onRankZero) {
    if (round.size() > Member.MOST_RANKS) {
      throw new Refusal(
          Native.WL_INVALID_ARGUMENT,
          "a start of " + round.size() + " ranks; it may have " + Member.MOST_RANKS);
    }
    ByteBuffer request = Wire.gather(Wire.NO_CALL, round);
    if (request.remaining() > Integer.BYTES + Wire.FRAME) {
      throw new Refusal(
          Native.WL_RESOURCE,
          "the ranks of this process have " + request.remaining() + " bytes to say, of at most "
              + Wire.FRAME + "; start fewer ranks in one process or job");
    }
    long patienceNs = TimeUnit.MILLISECONDS.toNanos(round.limitMs() + LAST_WORD_MS);
    String late =
        "the deadline passed, and the store at " + address + " did not say which of "
            + round.size() + " ranks had come";
    Reply reply = new Reply(true, onRankZero);
    ByteBuffer values = exchange("gather", late, patienceNs, request, reply);
    try {
      List<byte[]> said = new ArrayList<>(round.size());
      while (said.size() < round.size()) {
        said.add(Wire.value(values));
      }
      Wire.end(values);
      return said;
    } catch (MalformedException | BufferUnderflowException e) {
      throw unreadable("gather", e);
    }
  }

  @Override
  public void quit(String name) {
    if (end == null) {
      requests.add(request(Wire.QUIT, name.getBytes(StandardCharsets.UTF_8), 0, frame -> {}));
      selector.wakeup();
    }
  }

  @Override
  public void close() {
    closing = true;
    selector.wakeup();
    Sockets.join(thread, CLOSE_MS);
  }

  /** Makes a request with the id {@link Wire#NO_CALL}. */
  private static ByteBuffer request(byte kind, byte[] name, int more, Consumer<ByteBuffer> fill) {
    ByteBuffer frame = Wire.frame(Wire.HEAD + Wire.textBytes(name) + more);
    frame.put(kind).putInt(Wire.NO_CALL);
    Wire.putText(frame, name);
    fill.accept(frame);
    return frame.flip();
  }

  /** The body of a reply, complete once it has arrived whole. */
  private static final class Reply extends CompletableFuture<ByteBuffer> {
    private final Runnable onRankZero;
    private final boolean isGather;
    private final ByteArrayOutputStream pieces = new ByteArrayOutputStream();

    Reply(boolean isGather, Runnable onRankZero) {
      this.isGather = isGather;
      this.onRankZero = onRankZero;
    }

    void take(ByteBuffer frame) throws MalformedException {
      byte kind = isGather ? frame.get() : Wire.LAST_PIECE;
      pieces.writeBytes(Wire.bytes(frame, frame.remaining()));
      if (kind == Wire.NOTE) {
        onRankZero.run();
      } else if (kind == Wire.LAST_PIECE) {
        complete(ByteBuffer.wrap(pieces.toByteArray()));
      } else if (kind != Wire.PIECE || pieces.size() > 2 * Limits.TOTAL) {
        throw new MalformedException("a piece of kind " + kind + ", after " + pieces.size());
      }
    }
  }

  /** Reads the body of a reply. */
  @FunctionalInterface
  private interface Reading<T> {
    T of(ByteBuffer reply) throws MalformedException;
  }

  /**
   * Sends a request and waits for its reply.
   *
   * @param what the call, as errors name it
   */
  private <T> T ask(String what, Duration deadline, ByteBuffer request, Reading<T> reading) {
    return ask(what, "no answer of ", deadline, request, reading);
  }

  /**
   * Sends a request and waits for its reply.
   *
   * @param lacking what is missing where none comes
   */
  private <T> T ask(
      String what, String lacking, Duration deadline, ByteBuffer request, Reading<T> reading) {
    long nanos = Deadline.nanos(deadline);
    String late = lacking + "the store at " + address + " after " + Deadline.text(deadline);
    try {
      ByteBuffer body = exchange(what, late, nanos, request, new Reply(false, () -> {}));
      T result = reading.of(body);
      Wire.end(body);
      return result;
    } catch (Refusal e) {
      throw e.thrown(what);
    } catch (MalformedException | BufferUnderflowException e) {
      throw unreadable(what, e);
    }
  }

  private RuntimeException unreadable(String what, Exception e) {
    return new InternalException(
        what + ": the store at " + address + " answered with " + e.getMessage());
  }

  /**
   * Sends a request and waits for its reply.
   *
   * @param late message of the Timeout if none comes
   * @throws Refusal if the store refuses, or is lost, or says nothing in time
   */
  private ByteBuffer exchange(
      String what, String late, long nanos, ByteBuffer request, Reply reply) {
    int id = nextId();
    request.putInt(Integer.BYTES + 1, id);
    replies.put(id, reply);
    boolean answered = false;
    try {
      Refusal ended = end;
      if (ended != null) {
        throw ended;
      }
      requests.add(request);
      selector.wakeup();
      ByteBuffer body = reply.get(nanos, TimeUnit.NANOSECONDS);
      answered = true;
      return body;
    } catch (TimeoutException e) {
      throw new Refusal(Native.WL_TIMEOUT, late);
    } catch (InterruptedException e) {
      throw Waits.interrupted(what);
    } catch (ExecutionException e) {
      answered = true;
      throw (Refusal) e.getCause();
    } finally {
      replies.remove(id);
      if (!answered) {
        abandon(request, id);
      }
    }
  }

  private int nextId() {
    int id = ids.incrementAndGet();
    return id == Wire.NO_CALL ? ids.incrementAndGet() : id;
  }

  /** Takes a request back, or cancels it at the server. */
  private void abandon(ByteBuffer request, int id) {
    boolean waits = request.get(Integer.BYTES) == Wire.AWAIT;
    if (!takeBack(request) && waits && end == null) {
      requests.add(Wire.frame(Wire.HEAD).put(Wire.CANCEL).putInt(id).flip());
      selector.wakeup();
    }
  }

  private boolean takeBack(ByteBuffer request) {
    return requests.removeIf(other -> other == request);
  }

  private void run() {
    Refusal why = new Refusal(Native.WL_CLOSED, Waits.CLOSED);
    try {
      exchange();
    } catch (IOException | RuntimeException | OutOfMemoryError e) {
      String reason = e.getMessage() == null ? e.toString() : e.getMessage();
      if (e instanceof MalformedException || e instanceof BufferUnderflowException) {
        reason = "this member got " + reason;
        leave(reason);
      }
      why =
          new Refusal(
              Native.WL_PEER_LOST,
              "the store at " + address + " was lost: " + reason
                  + "; its owner has ended, closed it or turned this member away, or the"
                  + " network is cut");
    } finally {
      finish(why);
    }
  }

  /** Logs why the connection ends, and sends the reason to the server if that is possible. */
  private void leave(String why) {
    Log.warn("The store at " + address + " is left: " + why);
    try {
      channel.send(Wire.leave(why));
      channel.flush();
    } catch (IOException e) {
      // The connection is broken.
    }
  }

  /** Reads and writes until this is closed. */
  private void exchange() throws IOException {
    long heardNs = System.nanoTime();
    long pingedNs = heardNs;
    long pingNs = Math.max(1, silenceNs / 3);
    while (true) {
      boolean all = writeOrHear();
      key.interestOps(SelectionKey.OP_READ | (all ? 0 : SelectionKey.OP_WRITE));
      selector.select(Math.max(1, TimeUnit.NANOSECONDS.toMillis(pingNs)));
      selector.selectedKeys().clear();
      if (closing) {
        return;
      }
      if (read()) {
        heardNs = System.nanoTime();
      }
      long now = System.nanoTime();
      if (now - heardNs > silenceNs) {
        throw new IOException(
            "it has said nothing for " + Deadline.text(Duration.ofNanos(silenceNs)));
      }
      if (now - pingedNs >= pingNs) {
        pingedNs = now;
        channel.send(Wire.frame(Wire.HEAD).put(Wire.PING).putInt(Wire.NO_CALL).flip());
      }
    }
  }

  /** Writes like {@link #write}. If that fails, throws the reason that the server sent, if any. */
  private boolean writeOrHear() throws IOException {
    try {
      return write();
    } catch (IOException e) {
      try {
        while (read()) {
          // These replies came before the connection broke.
        }
      } catch (IOException ended) {
        e.addSuppressed(ended);
      }
      throw e;
    }
  }

  /** Writes what the socket takes. Returns true if nothing is left. */
  private boolean write() throws IOException {
    while (channel.flush()) {
      ByteBuffer next = requests.poll();
      if (next == null) {
        return true;
      }
      channel.send(next);
    }
    return false;
  }

  /** Hands out the replies that have arrived. Returns true if there were any. */
  private boolean read() throws IOException {
    if (!channel.fill()) {
      throw new IOException("it closed the connection");
    }
    boolean any = false;
    for (ByteBuffer frame = channel.next(); frame != null; frame = channel.next()) {
      any = true;
      byte code = frame.get();
      int id = frame.getInt();
      if (id == Wire.NO_CALL && code != Wire.DONE) {
        String why = Texts.printable(Wire.text(frame, Wire.REFUSAL));
        throw new Refusal(Native.WL_PEER_LOST, why);
      }
      Reply reply = replies.get(id);
      if (reply == null) {
        continue; // its caller has gone
      }
      if (code == Wire.DONE) {
        reply.take(frame);
      } else {
        reply.completeExceptionally(Wire.refusal(code, frame));
      }
    }
    return any;
  }

  /** Ends all calls, later ones too. */
  private void finish(Refusal why) {
    end = why;
    channel.close();
    Sockets.close(selector);
    requests.clear();
    for (Reply reply : new ArrayList<>(replies.values())) {
      reply.completeExceptionally(why);
    }
  }
}
