// SPDX-License-Identifier: Apache-2.0
package org.windlass.etcd;

import io.etcd.jetcd.ByteSequence;
import io.etcd.jetcd.Client;
import io.etcd.jetcd.ClientBuilder;
import io.etcd.jetcd.KV;
import io.etcd.jetcd.Watch;
import io.etcd.jetcd.common.exception.CompactedException;
import io.etcd.jetcd.common.exception.ErrorCode;
import io.etcd.jetcd.common.exception.EtcdException;
import io.etcd.jetcd.common.exception.EtcdExceptionFactory;
import io.etcd.jetcd.kv.TxnResponse;
import io.etcd.jetcd.options.WatchOption;
import java.io.File;
import java.time.Duration;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.RejectedExecutionException;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import java.util.function.Function;
import java.util.function.Supplier;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import javax.net.ssl.SSLException;
import org.jspecify.annotations.Nullable;
import org.windlass.error.ClosedException;
import org.windlass.error.DeadlineExceededException;
import org.windlass.error.InvalidArgumentException;
import org.windlass.error.PeerLostException;
import org.windlass.error.ResourceException;
import org.windlass.error.WindlassException;
import org.windlass.internal.Deadline;
import org.windlass.internal.Native;
import org.windlass.internal.store.Waits;

/**
 * A member's connection to etcd. A request ends with an answer, at its deadline, when the waiting
 * thread is interrupted, or when the connection ends.
 */
final class EtcdConnection implements AutoCloseable {
  static final String USER = "WINDLASS_ETCD_USER";
  static final String PASSWORD = "WINDLASS_ETCD_PASSWORD";

  /** Variable with the path of a PEM file of etcd's certificate authorities. Turns TLS on. */
  static final String AUTHORITIES = "WINDLASS_ETCD_CA";
  private static final Duration PING = Duration.ofSeconds(6); // a server accepts none below 5 s
  private static final Duration PONG = Duration.ofSeconds(3);

  private static final int LONGEST_ANSWER = 16 << 20;
  private static final long RETRY_MS = 50;
  private static final String NO_ANSWER = "no answer of ";
  private static final Pattern CAUSE = Pattern.compile("cause=([^\n]*)");

  final Client client;
  final String address;

  private final CompletableFuture<WindlassException> end = new CompletableFuture<>();

  /** Lease that is revoked when this connection ends; null before {@link #keepLease}. */
  private @Nullable KeptLease lease;

  private boolean isClosed;

  EtcdConnection(EtcdAddress address, Map<String, String> variables) {
    this.address = address.toString();
    ClientBuilder builder =
        Client.builder()
            .endpoints(address.uris())
            .waitForReady(true)
            .keepaliveTime(PING)
            .keepaliveTimeout(PONG)
            .keepaliveWithoutCalls(false)
            .maxInboundMessageSize(LONGEST_ANSWER);
    String user = variables.getOrDefault(USER, "");
    String password = variables.getOrDefault(PASSWORD, "");
    if (user.isEmpty() != password.isEmpty()) {
      throw new InvalidArgumentException(
          "one of " + USER + " and " + PASSWORD + " is set, and etcd wants both; set both, or"
              + " neither");
    }
    if (!user.isEmpty()) {
      builder.user(Owner.utf8(user)).password(Owner.utf8(password));
    }
    String file = variables.getOrDefault(AUTHORITIES, "");
    if (!file.isEmpty()) {
      try {
        builder.sslContext(context -> context.trustManager(new File(file)));
      } catch (SSLException | IllegalArgumentException e) {
        String why = (e.getCause() == null ? e : e.getCause()).getMessage();
        throw new ResourceException(
            AUTHORITIES + " is '" + file + "', from which no certificates can be read: " + why, e);
      }
    }
    client = builder.build();
  }

  KV kv() {
    return client.getKVClient();
  }

  KeptLease keepLease(long seconds, Call call) {
    lease = new KeptLease(this, seconds, call);
    return lease;
  }

  /** Ends all calls with PeerLost. Returns the reason why the connection has ended. */
  WindlassException lost(String why) {
    end.complete(new PeerLostException("the store at " + address + " was lost: " + why));
    return end.join();
  }

  /** Ends all calls with Closed, revokes the lease and closes the client. Idempotent. */
  @Override
  public synchronized void close() {
    if (!isClosed) {
      isClosed = true;
      end.complete(new ClosedException(Waits.CLOSED));
      if (lease != null) {
        lease.close();
      }
      client.close();
    }
  }

  /**
   * Returns the answer to a request that only reads. If the connection breaks, sends the request
   * again.
   */
  <T> T read(Call call, Supplier<CompletableFuture<T>> question) {
    while (true) {
      try {
        return await(call, NO_ANSWER, List.of(), begun(question));
      } catch (Unanswered e) {
        CompletableFuture<Void> pause = new CompletableFuture<>();
        pause.completeOnTimeout(null, RETRY_MS, TimeUnit.MILLISECONDS);
        await(call, NO_ANSWER, List.of(), pause);
      }
    }
  }

  /**
   * Returns etcd's answer to a request that changes keys. If the connection breaks, it is unknown
   * whether etcd made the change, so the store is lost.
   */
  <T> T change(Call call, Supplier<CompletableFuture<T>> change) {
    try {
      return await(call, NO_ANSWER, List.of(), begun(change));
    } catch (Unanswered e) {
      throw Waits.during(
          call.name(), lost("the connection broke before an answer came: " + e.getMessage()));
    }
  }

  /** Sends a request. Throws the reason if the connection has ended. */
  private <T> CompletableFuture<T> begun(Supplier<CompletableFuture<T>> request) {
    try {
      return end.isDone() ? CompletableFuture.failedFuture(end.join()) : request.get();
    } catch (RejectedExecutionException | EtcdException e) {
      return CompletableFuture.failedFuture(e);
    }
  }

  /**
   * Starts to watch keys. The future completes at the first change after etcd's revision {@code
   * revision}. It also completes if a change may have been missed, so the caller must read the keys
   * again. Cancel the future to end the watch.
   *
   * @param isPrefix true to watch all keys that begin with one of {@code keys}
   */
  CompletableFuture<Void> nextChange(long revision, boolean isPrefix, ByteSequence... keys) {
    CompletableFuture<Void> changed = new CompletableFuture<>();
    Watch.Listener listener =
        Watch.listener(
            response -> changed.complete(null),
            failure -> {
              boolean isPassing = hasCode(failure, ErrorCode.UNAVAILABLE);
              if (isPassing || failure instanceof CompactedException) {
                changed.complete(null);
              } else {
                changed.completeExceptionally(failure);
              }
            },
            () -> changed.complete(null));
    WatchOption.Builder option = WatchOption.builder().isPrefix(isPrefix).withRequireLeader(true);
    WatchOption after = option.withRevision(revision + 1).build();
    try {
      for (ByteSequence key : keys) {
        Watch.Watcher watcher = client.getWatchClient().watch(key, after, listener);
        changed.whenComplete((none, failure) -> watcher.close());
      }
    } catch (EtcdException e) {
      changed.complete(null); // the client is closed
    }
    return changed;
  }

  /**
   * Returns the result of {@code event}. Cancels it if it does not complete by the call's deadline.
   *
   * @param lacking text for the message at the deadline that says what the store lacks
   * @param faultyRanks the faulty ranks of the exception at the deadline
   */
  <T> T await(Call call, String lacking, List<Integer> faultyRanks, CompletableFuture<T> event) {
    try {
      CompletableFuture.anyOf(event, end).get(call.until().leftNs(), TimeUnit.NANOSECONDS);
      if (end.isDone()) {
        throw Waits.during(call.name(), end.join());
      }
      return event.join();
    } catch (TimeoutException e) {
      String limit = Deadline.text(call.until().deadline());
      String text = call.name() + ": " + lacking + "the store at " + address + " after " + limit;
      throw new DeadlineExceededException(text, faultyRanks);
    } catch (InterruptedException e) {
      throw Waits.interrupted(call.name());
    } catch (ExecutionException e) {
      throw failure(call, Objects.requireNonNull(e.getCause()));
    } finally {
      event.cancel(false);
    }
  }

  /**
   * Reads keys, and again after each change of {@code keys}, until {@code found} returns a value.
   *
   * @param read reads in a transaction
   * @param found returns null to wait for a change
   * @param lacking as for {@link #await}
   */
  <T> T await(
      Call call, String lacking, List<Integer> faultyRanks, Supplier<TxnResponse> read,
      Function<TxnResponse, @Nullable T> found, ByteSequence... keys) {
    while (true) {
      TxnResponse response = read.get();
      T value = found.apply(response);
      if (value != null) {
        return value;
      }
      long revision = response.getHeader().getRevision();
      await(call, lacking, faultyRanks, nextChange(revision, false, keys));
    }
  }

  /** Thrown if a connection broke before the answer arrived, or etcd can't answer now. */
  private static final class Unanswered extends RuntimeException {
    private static final long serialVersionUID = 1L;

    Unanswered(@Nullable String message) {
      super(message);
    }
  }

  private RuntimeException failure(Call call, Throwable cause) {
    if (end.isDone()) {
      return Waits.during(call.name(), end.join());
    }
    EtcdException failure = EtcdExceptionFactory.toEtcdException(cause);
    return switch (failure.getErrorCode()) {
      case UNAVAILABLE -> new Unanswered(failure.getMessage());
      case NOT_FOUND -> Waits.during(call.name(), lost(KeptLease.GONE));
      case DEADLINE_EXCEEDED -> {
        String text = call.name() + ": " + NO_ANSWER + "the etcd at " + address + ": ";
        yield new DeadlineExceededException(text + lastAttempt(text(failure)));
      }
      // For example: no permission, a full disk, or a request that is too large for this etcd.
      case PERMISSION_DENIED, UNAUTHENTICATED, RESOURCE_EXHAUSTED, INVALID_ARGUMENT,
          FAILED_PRECONDITION -> answered(Native.WL_RESOURCE, call, failure);
      default -> answered(Native.WL_INTERNAL, call, failure);
    };
  }

  private RuntimeException answered(int code, Call call, EtcdException failure) {
    String text = call.name() + ": the etcd at " + address + " answers: " + text(failure);
    return WindlassException.of(code, text, failure, "", List.of());
  }

  static boolean hasCode(Throwable failure, ErrorCode code) {
    return EtcdExceptionFactory.toEtcdException(failure).getErrorCode() == code;
  }

  /** Returns the reason why the last connection broke: gRPC's text without its stack trace. */
  private static String lastAttempt(String text) {
    Matcher cause = CAUSE.matcher(text);
    return cause.find() ? cause.group(1) : text.lines().findFirst().orElse("");
  }

  static String text(Throwable failure) {
    StringBuilder text = new StringBuilder();
    for (Throwable each = failure; each != null; each = each.getCause()) {
      String message = each.getMessage() == null ? each.toString() : each.getMessage();
      if (text.indexOf(message) < 0) {
        text.append(text.length() == 0 ? "" : ": ").append(message);
      }
    }
    return text.toString();
  }
}
