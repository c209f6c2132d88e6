// SPDX-License-Identifier: Apache-2.0
package org.windlass.etcd;

import io.etcd.jetcd.ByteSequence;
import io.etcd.jetcd.KeyValue;
import io.etcd.jetcd.kv.GetResponse;
import io.etcd.jetcd.kv.TxnResponse;
import io.etcd.jetcd.op.Op;
import io.etcd.jetcd.options.DeleteOption;
import io.etcd.jetcd.options.GetOption;
import io.etcd.jetcd.options.OptionsUtil;
import io.etcd.jetcd.options.PutOption;
import java.nio.ByteBuffer;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collections;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.Optional;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.atomic.AtomicLong;
import java.util.function.Consumer;
import java.util.function.Predicate;
import org.windlass.error.WindlassException;
import org.windlass.internal.Deadline;
import org.windlass.internal.store.Limits;
import org.windlass.internal.store.Round;
import org.windlass.internal.store.Store;
import org.windlass.internal.store.Waits;

/**
 * A member's access to a store in etcd; {@link Owner} has its keys. Each call is a transaction that
 * requires that the owner, rank 0, is present. A change also requires that the key has not changed
 * since it was read; otherwise it is tried again.
 *
 * <p>Held keys are removed when the store is closed, or when the lease of a killed process expires.
 * The store is lost if etcd does not answer for the term of a lease, or if the connection breaks
 * during a change. If another member of etcd takes over, calls continue otherwise.
 *
 * <p>A member checks {@link Limits#TOTAL} each time it has written {@link #UNMEASURED} bytes. So
 * each member may exceed the limit by that much.
 */
final class EtcdStore implements Store {
  private static final long UNMEASURED = 64 << 10;

  /** Most keys in one answer. */
  private static final int PAGE = 2048;

  private final EtcdConnection etcd;

  /** Lease of the keys that this member holds. */
  private final KeptLease lease;

  private final Owner owner;

  /** All-gathers in progress, by name. */
  private final Map<String, RoundsByKeys> rounds = new ConcurrentHashMap<>();

  /** Bytes written since the last check of the limit. */
  private final AtomicLong unmeasured = new AtomicLong();

  EtcdStore(EtcdConnection etcd, KeptLease lease, Owner owner) {
    this.etcd = etcd;
    this.lease = lease;
    this.owner = owner;
  }

  private WindlassException lostOwner() {
    return etcd.lost("rank 0, whose store it is, has ended or closed it");
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
    Objects.requireNonNull(value, "value");
    change(call("set " + key, deadline), key, any -> true, value, owner.lease());
  }

  @Override
  public Optional<byte[]> get(String key, Duration deadline) {
    Limits.key(key);
    return Optional.ofNullable(value(found(read(call("get " + key, deadline), key))));
  }

  @Override
  public Optional<byte[]> awaitOther(String key, byte[] seen, Duration deadline) {
    Limits.key(key);
    Limits.value(seen);
    byte[] own = copy(seen);
    Call call = call("await " + key, deadline);
    while (true) {
      TxnResponse response = read(call, key);
      byte[] now = value(found(response));
      if (!Arrays.equals(now, own)) {
        return Optional.ofNullable(now);
      }
      long revision = response.getHeader().getRevision();
      CompletableFuture<Void> change =
          etcd.nextChange(revision, false, owner.value(key), owner.key());
      etcd.await(call, Waits.lacking(own), List.of(), change);
    }
  }

  @Override
  public boolean compareAndSet(String key, byte[] expected, byte[] value, Duration deadline) {
    Limits.value(expected);
    byte[] own = copy(expected);
    Call call = call("compare and set " + key, deadline);
    return change(call, key, seen -> Arrays.equals(seen, own), value, owner.lease());
  }

  @Override
  public boolean hold(String key, byte[] value, Duration deadline) {
    Objects.requireNonNull(value, "value");
    return change(call("hold " + key, deadline), key, Objects::isNull, value, lease.id());
  }

  @Override
  public List<String> keys(String prefix, Duration deadline) {
    Limits.prefix(prefix);
    Call call = call("keys " + prefix, deadline);
    List<String> found = new ArrayList<>();
    long[] listing = new long[1];
    int start = owner.value("").size();
    range(
        call,
        owner.value(prefix),
        GetOption.builder().withKeysOnly(true),
        each -> {
          int bytes = each.getKey().size() - start;
          if (bytes == 0 || bytes > Limits.KEY) {
            return; // no member has written this
          }
          listing[0] += bytes + 2;
          if (listing[0] > Limits.LISTING) {
            throw Waits.during(call.name(), Limits.tooManyKeys());
          }
          found.add(owner.keyOf(each.getKey()));
        });
    Collections.sort(found);
    return found;
  }

  /** Runs {@code onRankZero} at once: the owner of the store is rank 0, and is present. */
  @Override
  public List<byte[]> gather(Round round, Runnable onRankZero) {
    onRankZero.run();
    RoundsByKeys all =
        rounds.computeIfAbsent(round.name(), name -> new RoundsByKeys(this, name, round.size()));
    List<byte[]> said = all.next(round);
    if (round.isLast()) {
      rounds.remove(round.name());
    }
    return said;
  }

  @Override
  public void quit(String name) {
    RoundsByKeys last = rounds.remove(name);
    if (last != null) {
      last.quit();
    }
  }

  @Override
  public void close() {
    etcd.close();
  }

  private static byte[] copy(byte[] value) {
    return value == null ? null : value.clone();
  }

  private Call call(String name, Duration deadline) {
    return new Call(name, Deadline.of(deadline));
  }

  private TxnResponse read(Call call, String key) {
    return read(call, Op.get(owner.value(key), GetOption.DEFAULT));
  }

  private TxnResponse read(Call call, Op op) {
    TxnResponse response = owner.read(etcd, call, op);
    if (!response.isSucceeded()) {
      throw Waits.during(call.name(), lostOwner());
    }
    return response;
  }

  /** Returns the first key that a transaction has read; null for an absent key. */
  private static KeyValue found(TxnResponse response) {
    List<KeyValue> found = response.getGetResponses().get(0).getKvs();
    return found.isEmpty() ? null : found.get(0);
  }

  private static byte[] value(KeyValue found) {
    return found == null ? null : found.getValue().getBytes();
  }

  /**
   * Changes a key if its value fulfils a condition. If another member changes the key meanwhile,
   * tries again.
   *
   * @param condition test of the present value, which is null for an absent key
   * @param value null to remove the key
   * @param newLease lease of a key that was absent; another key keeps its lease
   * @return true if the value fulfilled the condition
   */
  private boolean change(
      Call call, String key, Predicate<byte[]> condition, byte[] value, long newLease) {
    Limits.key(key);
    Limits.value(value);
    byte[] own = copy(value);
    // A key that may be absent is taken to be absent, which saves a request if it is.
    boolean mayBeAbsent = own != null && condition.test(null);
    KeyValue seen = mayBeAbsent ? null : found(read(call, key));
    while (condition.test(value(seen))) {
      if (own == null && seen == null) {
        return true;
      }
      requireRoom(call, key, value(seen), own);
      Op[] ops = ops(key, own, seen == null ? newLease : seen.getLease());
      long modified = seen == null ? 0 : seen.getModRevision();
      TxnResponse response = owner.change(etcd, call, owner.value(key), modified, ops);
      if (response.isSucceeded()) {
        return true;
      }
      if (!owner.isIn(response.getGetResponses().get(1).getKvs())) {
        throw Waits.during(call.name(), lostOwner());
      }
      seen = found(response);
    }
    return false;
  }

  /** Operations that give a key a value, or remove the key if the value is null. */
  private Op[] ops(String key, byte[] value, long keyLease) {
    ByteSequence place = owner.value(key);
    ByteSequence size = owner.size(key);
    if (value == null) {
      DeleteOption one = DeleteOption.DEFAULT;
      return new Op[] {Op.delete(place, one), Op.delete(size, one)};
    }
    PutOption option = PutOption.builder().withLeaseId(keyLease).build();
    ByteSequence bytes = number(cost(key, value));
    return new Op[] {Op.put(place, ByteSequence.from(value), option), Op.put(size, bytes, option)};
  }

  /** Checks that the store has room for a change. */
  private void requireRoom(Call call, String key, byte[] before, byte[] value) {
    long after = cost(key, value);
    if (after <= cost(key, before) || unmeasured.addAndGet(after) <= UNMEASURED) {
      return;
    }
    ByteSequence size = owner.size(key);
    long[] sizes = new long[2]; // other keys, this key
    range(
        call,
        owner.size(""),
        GetOption.builder(),
        each -> sizes[each.getKey().equals(size) ? 1 : 0] += number(each.getValue()));
    if (sizes[0] + after > Limits.TOTAL) {
      throw Waits.during(call.name(), Limits.full(sizes[0] + sizes[1], after - sizes[1]));
    }
    unmeasured.set(0);
  }

  /** Number of bytes that {@code key} counts with a value; 0 if the value is null. */
  private static long cost(String key, byte[] value) {
    return value == null ? 0 : Limits.cost(key) + value.length;
  }

  private static ByteSequence number(long value) {
    return ByteSequence.from(ByteBuffer.allocate(Long.BYTES).putLong(value).array());
  }

  /** Decodes a number; 0 for bytes that no member has written. */
  private static long number(ByteSequence stored) {
    byte[] bytes = stored.getBytes();
    return bytes.length == Long.BYTES ? Math.max(0, ByteBuffer.wrap(bytes).getLong()) : 0;
  }

  /** Passes all keys with a prefix to {@code reader}, as they were at one revision of etcd. */
  private void range(
      Call call, ByteSequence prefix, GetOption.Builder option, Consumer<KeyValue> reader) {
    option.withRange(OptionsUtil.prefixEndOf(prefix)).withLimit(PAGE);
    ByteSequence from = prefix;
    for (long revision = 0; ; ) {
      TxnResponse response = read(call, Op.get(from, option.withRevision(revision).build()));
      GetResponse page = response.getGetResponses().get(0);
      page.getKvs().forEach(reader);
      if (!page.isMore()) {
        return;
      }
      if (revision == 0) {
        revision = response.getHeader().getRevision();
      }
      ByteSequence last = page.getKvs().get(page.getKvs().size() - 1).getKey();
      from = last.concat(ByteSequence.from(new byte[1])); // the next possible key
    }
  }
}
