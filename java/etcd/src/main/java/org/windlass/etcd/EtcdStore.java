// SPDX-License-Identifier: Apache-2.0
package org.windlass.etcd;

import io.etcd.jetcd.ByteSequence;
import io.etcd.jetcd.KeyValue;
import io.etcd.jetcd.kv.GetResponse;
import io.etcd.jetcd.kv.TxnResponse;
import io.etcd.jetcd.op.Op;
import io.etcd.jetcd.options.DeleteOption;
import io.etcd.jetcd.options.GetOption;
import io.etcd.jetcd.options.PutOption;
import java.time.Duration;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.Optional;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ConcurrentHashMap;
import java.util.function.Predicate;
import java.util.stream.Stream;
import org.jspecify.annotations.Nullable;
import org.windlass.error.WindlassException;
import org.windlass.internal.Deadline;
import org.windlass.internal.store.Limits;
import org.windlass.internal.store.Store;
import org.windlass.internal.store.Waits;

/**
 * A member's access to a store in etcd; {@link Owner} has its keys. Each call is a transaction that
 * requires that the owner, rank 0, is present. A change also requires that the key has not changed
 * since it was read; otherwise it is tried again.
 *
 * <p>Held keys are removed when the store is closed, or when the lease of a killed process expires.
 * The store is lost if etcd does not answer for the term of a lease, or if the connection breaks
 * during a change. If the connection moves to another server of the same etcd, the store stays
 * usable, unless a change was in progress.
 *
 * <p>{@link Limits#TOTAL} limits the bytes that each member has written. Only the quota of etcd
 * limits the bytes of all members.
 */
final class EtcdStore implements Store {
  private static final int MOST_KEYS = 1 << 14; // largest number of keys that one call lists

  private final EtcdConnection etcd;
  private final KeptLease lease;
  private final Owner owner;

  /** For each key that this member has written, its number of bytes. */
  private final Map<String, Long> written = new ConcurrentHashMap<>();

  EtcdStore(EtcdConnection etcd, KeptLease lease, Owner owner) {
    this.etcd = etcd;
    this.lease = lease;
    this.owner = owner;
  }

  private WindlassException lostOwner() {
    return etcd.lost("rank 0, which owns the store, has ended or closed it");
  }

  @Override
  public String address() {
    return etcd.address;
  }

  @Override
  public Duration silence() {
    return lease.term();
  }

  @Override
  public void set(String key, byte[] value, Duration deadline) {
    change(call("set " + key, deadline), key, any -> true, value, owner.lease());
  }

  @Override
  public Optional<byte[]> get(String key, Duration deadline) {
    Limits.key(key);
    return Optional.ofNullable(value(found(read(call("get " + key, deadline), read(key)), 0)));
  }

  @Override
  public Change awaitAny(Map<String, byte @Nullable []> seen, Duration deadline) {
    Limits.watched(seen);
    List<String> keys = List.copyOf(seen.keySet());
    Call call = call("await " + keys.get(0), deadline);
    Stream<ByteSequence> places =
        Stream.concat(keys.stream().map(owner::value), Stream.of(owner.key()));
    Op[] reads = keys.stream().map(key -> read(key)).toArray(Op[]::new);
    return etcd.await(
        call, Waits.lacking(seen.get(keys.get(0))), List.of(), () -> read(call, reads),
        response -> {
          for (int i = 0; i < reads.length; i++) {
            byte[] now = value(found(response, i));
            if (!Arrays.equals(now, seen.get(keys.get(i)))) {
              return new Change(keys.get(i), now);
            }
          }
          return null;
        },
        places.toArray(ByteSequence[]::new));
  }

  @Override
  public boolean compareAndSet(
      String key, byte @Nullable [] expected, byte @Nullable [] value, Duration deadline) {
    Limits.value(expected);
    Call call = call("compare and set " + key, deadline);
    return change(call, key, seen -> Arrays.equals(seen, expected), value, owner.lease());
  }

  @Override
  public boolean hold(String key, byte[] value, Duration deadline) {
    return change(call("hold " + key, deadline), key, Objects::isNull, value, lease.id());
  }

  @Override
  public List<String> keys(String prefix, Duration deadline) {
    Limits.prefix(prefix);
    Call call = call("keys " + prefix, deadline);
    GetOption all =
        GetOption.builder().isPrefix(true).withKeysOnly(true).withLimit(MOST_KEYS).build();
    GetResponse found =
        read(call, Op.get(owner.value(prefix), all)).getGetResponses().get(0);
    List<String> keys =
        found.getKvs().stream()
            .map(each -> owner.keyOf(each.getKey()))
            .filter(key -> !key.isEmpty() && Limits.bytes(key) <= Limits.KEY) // of a member
            .sorted()
            .toList();
    if (found.isMore() || keys.stream().mapToInt(Limits::listing).sum() > Limits.LISTING) {
      throw Waits.during(call.name(), Limits.tooManyKeys());
    }
    return keys;
  }

  @Override
  public void close() {
    etcd.close();
  }

  private Call call(String name, Duration deadline) {
    return new Call(name, Deadline.of(deadline));
  }

  private Op read(String key) {
    return Op.get(owner.value(key), GetOption.DEFAULT);
  }

  private TxnResponse read(Call call, Op... ops) {
    TxnResponse response = owner.read(etcd, call, ops);
    if (!response.isSucceeded()) {
      throw Waits.during(call.name(), lostOwner());
    }
    return response;
  }

  /** Returns the key that a read of a transaction found; null if the key was absent. */
  private static @Nullable KeyValue found(TxnResponse response, int read) {
    List<KeyValue> found = response.getGetResponses().get(read).getKvs();
    return found.isEmpty() ? null : found.get(0);
  }

  private static byte @Nullable [] value(@Nullable KeyValue found) {
    return found == null ? null : found.getValue().getBytes();
  }

  /**
   * Changes a key if its value fulfils a condition. If another member changes the key meanwhile,
   * tries again.
   *
   * @param condition gets the current value; null if the key has none
   * @param value new value; null to remove the key
   * @param newLease lease for a key that was absent; an existing key keeps its lease
   * @return whether the condition was fulfilled
   */
  private boolean change(
      Call call, String key, Predicate<byte @Nullable []> condition, byte @Nullable [] value,
      long newLease) {
    Limits.key(key);
    Limits.value(value);
    // If the new value is allowed for an absent key, this first tries the change without reading
    // the key, which saves a request.
    boolean mayBeAbsent = value != null && condition.test(null);
    KeyValue seen = mayBeAbsent ? null : found(read(call, read(key)), 0);
    while (condition.test(value(seen))) {
      if (value == null && seen == null) {
        return true;
      }
      requireRoom(call, key, value);
      long keyLease = seen == null ? newLease : seen.getLease();
      long modified = seen == null ? 0 : seen.getModRevision();
      ByteSequence place = owner.value(key);
      Op op =
          value == null
              ? Op.delete(place, DeleteOption.DEFAULT)
              : Op.put(
                  place,
                  ByteSequence.from(value),
                  PutOption.builder().withLeaseId(keyLease).build());
      TxnResponse response = owner.change(etcd, call, place, modified, op);
      if (response.isSucceeded()) {
        written.compute(key, (any, before) -> value == null ? null : cost(key, value));
        return true;
      }
      if (!owner.isIn(response.getGetResponses().get(1).getKvs())) {
        throw Waits.during(call.name(), lostOwner());
      }
      seen = found(response, 0);
    }
    return false;
  }

  private void requireRoom(Call call, String key, byte @Nullable [] value) {
    long before = written.getOrDefault(key, 0L);
    long all = written.values().stream().mapToLong(Long::longValue).sum();
    long more = cost(key, value) - before;
    if (more > 0 && all + more > Limits.TOTAL) {
      throw Waits.during(call.name(), Limits.full(all, more));
    }
  }

  private static long cost(String key, byte @Nullable [] value) {
    return value == null ? 0 : Limits.cost(key) + value.length;
  }
}
