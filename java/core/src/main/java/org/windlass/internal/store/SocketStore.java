// SPDX-License-Identifier: Apache-2.0
package org.windlass.internal.store;

import java.io.IOException;
import java.net.InetSocketAddress;
import java.net.SocketTimeoutException;
import java.nio.ByteBuffer;
import java.time.Duration;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import java.util.concurrent.atomic.AtomicInteger;
import org.jspecify.annotations.Nullable;
import org.windlass.error.ClosedException;
import org.windlass.error.DeadlineExceededException;
import org.windlass.error.InternalException;
import org.windlass.error.PeerLostException;
import org.windlass.error.ResourceException;
import org.windlass.error.WindlassException;
import org.windlass.internal.Deadline;
import org.windlass.internal.Log;

/**
 * A member's connection to a {@link StoreServer}. One daemon thread reads it and another writes it,
 * so that a server that reads nothing delays no caller past its deadline. If the connection breaks,
 * or is silent for too long, all calls fail with {@link org.windlass.error.PeerLostException}. It
 * does not reconnect.
 */
public final class SocketStore implements Store {
  /**
   * Milliseconds that the server gets to receive the reason why this member ends the connection.
   */
  private static final long LAST_WORD_MS = 2000;

  /** Time after which even an idle member sends a second request; see {@link Session}. */
  private static final long FIRST_PING_NS = 1_000_000_000;

  private final String address;
  private final Connector.Connection connection;
  private final Thread reader;
  private final Thread writer;
  private final BlockingQueue<byte[]> requests = new LinkedBlockingQueue<>();
  private final AtomicInteger ids = new AtomicInteger(Wire.NO_CALL);
  private final Map<Integer, CompletableFuture<ByteBuffer>> replies = new ConcurrentHashMap<>();
  private volatile boolean closing;
  private volatile @Nullable WindlassException end;

  /**
   * Connects to a store. If no server listens yet, waits until one does.
   *
   * @param address its host may be a name, which each attempt looks up
   * @throws WindlassException Mismatch if the server has another version of the protocol, or if the
   *     rank is already connected. Resource if the server has another token or is full.
   *     InvalidArgument if no store listens there. DeadlineExceeded at the deadline. Aborted on an
   *     interrupt.
   */
  public static SocketStore connect(
      InetSocketAddress address, Token token, Member member, Duration deadline) {
    return connect(address, token, member, false, deadline);
  }

  /**
   * Connects. If {@code isOpened}, a server has listened before; then throws PeerLost if no server
   * listens now.
   */
  public static SocketStore connect(
      InetSocketAddress address, Token token, Member member, boolean isOpened, Duration deadline) {
    SocketStore store =
        new SocketStore(
            Sockets.name(address),
            new Connector(address, token, member, isOpened, deadline).connect());
    try {
      store.writer.start();
      store.reader.start();
    } catch (OutOfMemoryError e) {
      store.finish(new ClosedException(Waits.CLOSED));
      throw new ResourceException(
          "no thread for the connection to the store at " + store.address, e);
    }
    return store;
  }

  private SocketStore(String address, Connector.Connection connection) {
    String name = "windlass-store-of-" + address;
    this.address = address;
    this.connection = connection;
    this.reader = Sockets.daemon(this::read, name);
    this.writer = Sockets.daemon(this::write, name);
  }

  @Override
  public String address() {
    return address;
  }

  @Override
  public Duration silence() {
    return connection.silence();
  }

  @Override
  public void set(String key, byte[] value, Duration deadline) {
    Limits.key(key);
    Limits.value(value);
    ask("set " + key, deadline, reply -> true, Wire.SET, key, value);
  }

  @Override
  public Optional<byte[]> get(String key, Duration deadline) {
    Limits.key(key);
    return ask("get " + key, deadline, SocketStore::value, Wire.GET, key);
  }

  @Override
  public Change awaitAny(Map<String, byte @Nullable []> seen, Duration deadline) {
    Limits.watched(seen);
    Map.Entry<String, byte @Nullable []> first = seen.entrySet().iterator().next();
    int id = nextId();
    return exchange(
        "await " + first.getKey(), Waits.lacking(first.getValue()), deadline, id,
        Wire.await(id, seen),
        reply -> new Change(Wire.text(reply, Limits.KEY), Wire.array(reply)));
  }

  @Override
  public boolean compareAndSet(
      String key, byte @Nullable [] expected, byte @Nullable [] value, Duration deadline) {
    Limits.key(key);
    Limits.value(expected);
    Limits.value(value);
    return ask(
        "compare and set " + key, deadline, SocketStore::isOne, Wire.CAS, key, expected, value);
  }

  @Override
  public boolean hold(String key, byte[] value, Duration deadline) {
    Limits.key(key);
    Limits.value(value);
    return ask("hold " + key, deadline, SocketStore::isOne, Wire.HOLD, key, value);
  }

  private static Optional<byte[]> value(ByteBuffer reply) throws MalformedException {
    return Optional.ofNullable(Wire.array(reply));
  }

  private static boolean isOne(ByteBuffer reply) {
    return reply.get() != 0;
  }

  @Override
  public List<String> keys(String prefix, Duration deadline) {
    Limits.prefix(prefix);
    return ask("keys " + prefix, deadline, Wire::keys, Wire.KEYS, prefix);
  }

  @Override
  public void close() {
    closing = true;
    connection.close();
    Sockets.join(reader);
    Sockets.join(writer);
  }

  private <T> T ask(
      String call, Duration deadline, Wire.Reading<T> reading, byte kind, String key,
      byte[] @Nullable ... arrays) {
    int id = nextId();
    byte[] request = Wire.request(kind, id, key, arrays);
    return exchange(call, "no answer of ", deadline, id, request, reading);
  }

  /**
   * Sends a request and waits for its reply.
   *
   * @param call name of the call, with which the messages of exceptions begin
   * @param lacking text for the message at the deadline that says what the store lacks
   * @param id identifier of the request
   */
  private <T> T exchange(
      String call, String lacking, Duration deadline, int id, byte[] request,
      Wire.Reading<T> reading) {
    long limitNs = Deadline.nanos(deadline);
    CompletableFuture<ByteBuffer> reply = new CompletableFuture<>();
    replies.put(id, reply);
    if (end != null) {
      reply.completeExceptionally(end);
    }
    send(request);
    try {
      return Wire.read(reply.get(limitNs, TimeUnit.NANOSECONDS), reading);
    } catch (ExecutionException e) {
      throw e.getCause() instanceof WindlassException why
          ? Waits.during(call, why)
          : (RuntimeException) e.getCause();
    } catch (TimeoutException e) {
      throw new DeadlineExceededException(
          call + ": " + lacking + "the store at " + address + " after " + Deadline.text(deadline));
    } catch (InterruptedException e) {
      throw Waits.interrupted(call);
    } catch (MalformedException e) {
      throw new InternalException(
          call + ": the store at " + address + " answered with " + e.getMessage());
    } finally {
      replies.remove(id);
      if (!requests.remove(request) && request[0] == Wire.AWAIT && !reply.isDone()) {
        send(Wire.body(Wire.CANCEL, id));
      }
    }
  }

  private int nextId() {
    int id = ids.incrementAndGet();
    return id == Wire.NO_CALL ? ids.incrementAndGet() : id;
  }

  private void send(byte[] body) {
    if (end == null) {
      requests.add(body);
    }
  }

  /** Sends frames and PINGs until the connection ends, or until a LEAVE is sent. */
  private void write() {
    long pingNs = Deadline.nanos(silence()) / 3;
    long dueNs = System.nanoTime() + Math.min(pingNs, FIRST_PING_NS);
    byte[] sent;
    try {
      do {
        sent = requests.poll(dueNs - System.nanoTime(), TimeUnit.NANOSECONDS);
        if (sent == null) {
          sent = Wire.body(Wire.PING, Wire.NO_CALL);
          dueNs = System.nanoTime() + pingNs;
        }
        connection.send(sent);
      } while (sent[0] != Wire.LEAVE);
    } catch (IOException | InterruptedException e) {
      // The connection has ended. The reader finds the reason.
    } catch (RuntimeException | Error e) {
      connection.close(); // the reader ends all calls
    }
  }

  private void read() {
    String why;
    try {
      while (true) {
        Wire.read(connection.receive(Deadline.of(silence())), this::take);
      }
    } catch (SocketTimeoutException e) {
      why = "it has said nothing for " + Deadline.text(silence());
    } catch (MalformedException e) {
      why = "this member got " + e.getMessage();
      leave(why);
    } catch (IOException | RuntimeException | Error e) {
      why = e.getMessage() == null ? e.toString() : e.getMessage();
    }
    finish(
        closing
            ? new ClosedException(Waits.CLOSED)
            : new PeerLostException(
                "the store at " + address + " was lost: " + why
                    + "; its owner has ended, closed it or turned this member away, or the"
                    + " network is cut"));
  }

  private Void take(ByteBuffer frame) throws MalformedException {
    byte code = frame.get();
    int id = frame.getInt();
    if (id == Wire.NO_CALL && code != Wire.DONE) {
      throw new PeerLostException(Texts.printable(Wire.text(frame, Wire.REFUSAL)));
    }
    CompletableFuture<ByteBuffer> reply = replies.get(id);
    if (reply == null) {
      frame.position(frame.limit()); // its caller has gone, or it answers a PING
    } else if (code == Wire.DONE) {
      reply.complete(ByteBuffer.wrap(Wire.bytes(frame, frame.remaining())));
    } else {
      reply.completeExceptionally(Wire.refusal(code, frame));
    }
    return null;
  }

  /** Logs why the connection ends, and sends the reason to the server if possible. */
  private void leave(String why) {
    Log.warn("The store at " + address + " is left: " + why);
    send(Wire.leave(why));
    try {
      writer.join(LAST_WORD_MS);
    } catch (InterruptedException e) {
      // No code interrupts the reader on purpose.
    }
  }

  private void finish(WindlassException why) {
    end = why;
    connection.close();
    writer.interrupt();
    requests.clear();
    for (CompletableFuture<ByteBuffer> reply : replies.values()) {
      reply.completeExceptionally(why);
    }
  }
}
