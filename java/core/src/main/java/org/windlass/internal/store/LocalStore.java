// SPDX-License-Identifier: Apache-2.0
package org.windlass.internal.store;

import java.time.Duration;
import java.util.HashSet;
import java.util.List;
import java.util.Objects;
import java.util.Optional;
import java.util.Set;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import java.util.function.Supplier;
import org.windlass.internal.Deadline;
import org.windlass.internal.FailureMaker;
import org.windlass.internal.Native;

/** A store within this process. Nothing but {@link #awaitOther} waits. */
public final class LocalStore implements Store {
  /** Guards itself, and what belongs to its members. */
  private final Table table;

  private final FailureMaker failures;

  /** The waits in progress. */
  private final Set<CompletableFuture<byte[]>> waiting = new HashSet<>();

  private boolean closed;

  /** A new store, and its first member's way in. */
  public LocalStore(FailureMaker failures) {
    this(new Table(), failures);
  }

  private LocalStore(Table table, FailureMaker failures) {
    this.table = table;
    this.failures = Objects.requireNonNull(failures, "failures");
  }

  /** Another member's way into the same store, which lasts as long as any. */
  public LocalStore join() {
    return new LocalStore(table, failures);
  }

  @Override
  public String address() {
    return "this process";
  }

  @Override
  public Duration silence() {
    return Duration.ZERO;
  }

  @Override
  public void set(String key, byte[] value, Duration deadline) {
    byte[] own = Objects.requireNonNull(value, "value").clone();
    Limits.key(key, failures);
    Limits.value(value, failures);
    within(
        "set " + key,
        deadline,
        () -> {
          table.set(key, own);
          return null;
        });
  }

  @Override
  public Optional<byte[]> get(String key, Duration deadline) {
    Limits.key(key, failures);
    return within("get " + key, deadline, () -> copy(table.get(key)));
  }

  @Override
  public Optional<byte[]> awaitOther(String key, byte[] seen, Duration deadline) {
    Limits.key(key, failures);
    Limits.value(seen, failures);
    String call = "await " + key;
    long nanos = Deadline.nanos(deadline, failures);
    byte[] own = seen == null ? null : seen.clone();
    CompletableFuture<byte[]> other = new CompletableFuture<>();
    Table.Wait wait =
        within(
            call,
            deadline,
            () -> {
              waiting.add(other);
              return table.await(key, own, other::complete);
            });
    try {
      return copy(other.get(nanos, TimeUnit.NANOSECONDS));
    } catch (TimeoutException e) {
      throw failures.make(
          Native.WL_TIMEOUT,
          call + ": " + Waits.lacking(seen) + address() + " after " + Deadline.text(deadline));
    } catch (InterruptedException e) {
      throw Waits.interrupted(call, failures);
    } catch (ExecutionException e) {
      throw ((Refusal) e.getCause()).thrown(call, failures);
    } finally {
      synchronized (table) {
        waiting.remove(other);
        if (wait != null) {
          wait.cancel();
        }
      }
    }
  }

  @Override
  public long add(String key, long delta, Duration deadline) {
    Limits.key(key, failures);
    return within("add to " + key, deadline, () -> table.add(key, delta));
  }

  @Override
  public boolean compareAndSet(String key, byte[] expected, byte[] value, Duration deadline) {
    Limits.key(key, failures);
    Limits.value(expected, failures);
    Limits.value(value, failures);
    byte[] own = value == null ? null : value.clone();
    return within(
        "compare and set " + key, deadline, () -> table.compareAndSet(key, expected, own));
  }

  @Override
  public boolean hold(String key, byte[] value, Duration deadline) {
    byte[] own = Objects.requireNonNull(value, "value").clone();
    Limits.key(key, failures);
    Limits.value(value, failures);
    return within("hold " + key, deadline, () -> table.hold(key, own, this));
  }

  @Override
  public List<String> keys(String prefix, Duration deadline) {
    Limits.prefix(prefix, failures);
    return within("keys " + prefix, deadline, () -> table.keys(prefix));
  }

  @Override
  public void close() {
    synchronized (table) {
      if (!closed) {
        closed = true;
        table.release(this);
        Refusal end = new Refusal(Native.WL_CLOSED, Waits.CLOSED);
        waiting.forEach(wait -> wait.completeExceptionally(end));
      }
    }
  }

  private <T> T within(String call, Duration deadline, Supplier<T> body) {
    Deadline.nanos(deadline, failures);
    try {
      synchronized (table) {
        if (closed) {
          throw new Refusal(Native.WL_CLOSED, Waits.CLOSED);
        }
        return body.get();
      }
    } catch (Refusal refusal) {
      throw refusal.thrown(call, failures);
    }
  }

  private static Optional<byte[]> copy(byte[] value) {
    return Optional.ofNullable(value).map(byte[]::clone);
  }
}
