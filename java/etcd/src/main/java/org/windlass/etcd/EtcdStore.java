// SPDX-License-Identifier: Apache-2.0
package org.windlass.etcd;

import io.etcd.jetcd.ByteSequence;
import io.etcd.jetcd.Client;
import io.etcd.jetcd.KV;
import io.etcd.jetcd.KeyValue;
import io.etcd.jetcd.kv.GetResponse;
import io.etcd.jetcd.kv.TxnResponse;
import io.etcd.jetcd.lease.LeaseGrantResponse;
import io.etcd.jetcd.op.Cmp;
import io.etcd.jetcd.op.CmpTarget;
import io.etcd.jetcd.op.Op;
import io.etcd.jetcd.options.DeleteOption;
import io.etcd.jetcd.options.GetOption;
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
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicLong;
import java.util.function.Consumer;
import java.util.function.Function;
import org.windlass.internal.Deadline;
import org.windlass.internal.FailureMaker;
import org.windlass.internal.Native;
import org.windlass.internal.store.Limits;
import org.windlass.internal.store.Member;
import org.windlass.internal.store.Refusal;
import org.windlass.internal.store.Round;
import org.windlass.internal.store.Store;
import org.windlass.internal.store.Waits;

/**
 * A member's way into a store that lies in etcd ({@link Keys}). Each call is a transaction of
 * etcd's that is made only as long as the store's owner, rank 0, is there; a change of what a key
 * has is made only where the key is still as it was seen, and else tried again.
 *
 * <p>What is held goes with this way in: at once where it is closed, within {@link #LEASE_SECONDS}
 * where its process is killed. An etcd that has not answered for that long is lost, and so is one
 * whose connection breaks while a change is under way; that the members of an etcd fail over to one
 * another goes unseen otherwise.
 *
 * <p>{@link Limits#TOTAL} is looked at before a member writes more than {@link #UNMEASURED} bytes,
 * so that it may be exceeded by as much for each member.
 */
final class EtcdStore implements Store {
  /** How long what a killed process held is there, at most. */
  static final long LEASE_SECONDS = 10;

  /** What a member writes between two looks at how much there is. */
  private static final long UNMEASURED = 64 << 10;

  /** Keys of one answer. */
  private static final int PAGE = 2048;

  /** How much sooner than the deadline jetcd ends the first wait, of which it says what was wrong. */
  private static final long WHY_NS = TimeUnit.MILLISECONDS.toNanos(250);

  /** The part of a deadline that is at most for it. */
  private static final int WHY_PART = 4;

  private static final GetOption KEYS_ONLY = GetOption.builder().withKeysOnly(true).build();

  private final String address;
  private final FailureMaker failures;
  private final Client client;
  private final KV kv;
  private final Requests requests;
  private final List<AutoCloseable> open = new ArrayList<>();
  private final AtomicLong unmeasured = new AtomicLong();

  /** Of what is held. */
  private KeptLease lease;
  private long leaseSeconds;

  /** By the name of the all-gather. */
  private final Map<String, RoundsByKeys> rounds = new ConcurrentHashMap<>();

  private Owner owner;
  private boolean isClosed;

  /**
   * Comes into the store {@code name}, of which rank 0 is the owner.
   *
   * @param leaseSeconds see {@link #LEASE_SECONDS}; the same for all members
   */
  static EtcdStore connect(
      EtcdAddress place,
      EtcdAccess access,
      String name,
      Member member,
      Duration deadline,
      long leaseSeconds,
      FailureMaker failures) {
    Deadline until = Deadline.of(deadline, failures);
    EtcdStore store = new EtcdStore(place, access.client(place, failures), failures);
    boolean isIn = false;
    try {
      store.come(place.prefix() + "/" + name + "/", member, leaseSeconds, until);
      isIn = true;
      return store;
    } finally {
      if (!isIn) {
        store.close();
      }
    }
  }

  private EtcdStore(EtcdAddress place, Client client, FailureMaker failures) {
    this.address = place.toString();
    this.failures = failures;
    this.client = client;
    this.kv = client.getKVClient();
    this.requests = new Requests(address, failures);
  }

  private void come(String root, Member member, long leaseSeconds, Deadline until) {
    long beginNs = System.nanoTime();
    long leftNs = until.leftNs();
    long limitNs = leftNs - Math.min(WHY_NS, leftNs / WHY_PART);
    long limitMs = Math.max(1, TimeUnit.NANOSECONDS.toMillis(limitNs));
    this.leaseSeconds = leaseSeconds;
    LeaseGrantResponse granted =
        requests.read(
            "connect to the store at " + address + " as " + member,
            until,
            () -> client.getLeaseClient().grant(leaseSeconds, limitMs, TimeUnit.MILLISECONDS));
    lease =
        new KeptLease(
            client.getLeaseClient(), granted.getID(), granted.getTTL(), beginNs, requests::lost);
    lease.start();
    Entrance entrance =
        new Entrance(
            client, requests, lease, root, address, member, granted.getTTL(), until, failures);
    owner = entrance.enter();
    if (member.rank() == 0) {
      open.add(new Admission(client, owner, requests));
    }
    open.add(
        new Lookout(
            client,
            owner.key(),
            () -> KEYS_ONLY,
            found -> {
              if (!owner.isIn(found.getKvs())) {
                leftByOwner();
              }
            },
            failure -> requests.lost(Requests.told(failure))));
  }

  private Refusal leftByOwner() {
    return requests.lost("rank 0, whose store it is, has ended or closed it");
  }

  @Override
  public String address() {
    return address;
  }

  @Override
  public Duration silence() {
    return Duration.ofSeconds(leaseSeconds);
  }

  @Override
  public void set(String key, byte[] value, Duration deadline) {
    Limits.key(key, failures);
    byte[] own = Objects.requireNonNull(value, "value").clone();
    Limits.value(own, failures);
    change("set " + key, key, deadline, Stored.NOTHING, seen -> seen.changedTo(own, owner.lease()));
  }

  @Override
  public Optional<byte[]> get(String key, Duration deadline) {
    Limits.key(key, failures);
    Deadline until = Deadline.of(deadline, failures);
    return Optional.ofNullable(look("get " + key, key, until).value);
  }

  @Override
  public Optional<byte[]> awaitOther(String key, byte[] seen, Duration deadline) {
    Limits.key(key, failures);
    Limits.value(seen, failures);
    byte[] own = seen == null ? null : seen.clone();
    String call = "await " + key;
    Deadline until = Deadline.of(deadline, failures);
    while (true) {
      Stored now = look(call, key, until);
      if (!Arrays.equals(now.value, own)) {
        return Optional.ofNullable(now.value);
      }
      try (Watching watching =
          new Watching(client, owner.keys().value(key), now.revision + 1)) {
        requests.await(call, Waits.lacking(own), List.of(), until, watching.changed());
      }
    }
  }

  @Override
  public boolean compareAndSet(String key, byte[] expected, byte[] value, Duration deadline) {
    Limits.key(key, failures);
    Limits.value(expected, failures);
    Limits.value(value, failures);
    byte[] awaited = expected == null ? null : expected.clone();
    byte[] own = value == null ? null : value.clone();
    return change(
        "compare and set " + key,
        key,
        deadline,
        awaited == null && own != null ? Stored.NOTHING : null,
        seen -> Arrays.equals(seen.value, awaited) ? seen.changedTo(own, owner.lease()) : null);
  }

  @Override
  public boolean hold(String key, byte[] value, Duration deadline) {
    Limits.key(key, failures);
    byte[] own = Objects.requireNonNull(value, "value").clone();
    Limits.value(own, failures);
    return change(
        "hold " + key,
        key,
        deadline,
        Stored.NOTHING,
        seen -> seen.value == null ? seen.changedTo(own, lease.id()) : null);
  }

  @Override
  public List<String> keys(String prefix, Duration deadline) {
    Limits.prefix(prefix, failures);
    String call = "keys " + prefix;
    Deadline until = Deadline.of(deadline, failures);
    List<String> found = new ArrayList<>();
    long[] listing = new long[1];
    ByteSequence all = owner.keys().value("");
    try {
      range(
          call,
          owner.keys().value(prefix),
          KEYS_ONLY,
          until,
          each -> {
            int bytes = each.getKey().size() - all.size();
            if (bytes == 0 || bytes > Limits.KEY) {
              return; // what no member has written
            }
            listing[0] += bytes + 2;
            if (listing[0] > Limits.LISTING) {
              throw Limits.tooManyKeys();
            }
            found.add(owner.keys().key(each.getKey()));
          });
    } catch (Refusal refusal) {
      throw refusal.thrown(call, failures);
    }
    Collections.sort(found);
    return found;
  }

  /** {@code onRankZero} runs at once: the owner of the store is rank 0, and is there. */
  @Override
  public List<byte[]> gather(Round round, Runnable onRankZero) {
    onRankZero.run();
    RoundsByKeys all =
        rounds.computeIfAbsent(
            round.name(), name -> new RoundsByKeys(this, name, round.size()));
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
  public synchronized void close() {
    if (isClosed) {
      return;
    }
    isClosed = true;
    requests.finish(new Refusal(Native.WL_CLOSED, Waits.CLOSED));
    for (AutoCloseable each : open) {
      try {
        each.close();
      } catch (Exception e) {
        // It is gone either way.
      }
    }
    if (lease != null) {
      lease.close();
    }
    client.close();
  }

  /**
   * What a key has.
   *
   * @param value null for nothing
   * @param modified the revision of etcd at which it got that; 0 for nothing
   * @param lease under which it has it
   * @param revision of etcd at which this was seen
   */
  private record Stored(byte[] value, long modified, long lease, long revision) {
    static final Stored NOTHING = new Stored(null, 0, 0, 0);

    static Stored of(GetResponse response, long revision) {
      if (response.getKvs().isEmpty()) {
        return new Stored(null, 0, 0, revision);
      }
      KeyValue found = response.getKvs().get(0);
      return new Stored(
          found.getValue().getBytes(), found.getModRevision(), found.getLease(), revision);
    }

    /** The same with another value, which stays its holder's if it has one. */
    Change changedTo(byte[] other, long ownLease) {
      return new Change(other, value == null ? ownLease : lease);
    }
  }

  /**
   * What a key is to have.
   *
   * @param value null for nothing
   */
  private record Change(byte[] value, long lease) {}

  /** How much {@code key} counts with a value; null stands for none. */
  private static long cost(String key, byte[] value) {
    return value == null ? 0 : Limits.cost(key) + value.length;
  }

  private static byte[] number(long value) {
    return ByteBuffer.allocate(Long.BYTES).putLong(value).array();
  }

  /** What {@link #number(long)} gave; 0 for what somebody else has written there. */
  private static long number(ByteSequence stored) {
    byte[] bytes = stored.getBytes();
    return bytes.length == Long.BYTES ? Math.max(0, ByteBuffer.wrap(bytes).getLong()) : 0;
  }

  private Stored look(String call, String key, Deadline until) {
    ByteSequence place = owner.keys().value(key);
    TxnResponse response =
        requests.read(
            call,
            until,
            () ->
                kv.txn().If(owner.isThere()).Then(Op.get(place, GetOption.DEFAULT)).commit());
    if (!response.isSucceeded()) {
      throw leftByOwner().thrown(call, failures);
    }
    return Stored.of(response.getGetResponses().get(0), response.getHeader().getRevision());
  }

  /**
   * Changes {@code key}, as often as others change it in between.
   *
   * @param guess what it has most likely; null where that is to be seen first
   * @param next what comes of what it has; null for no change
   * @return whether there was a change
   */
  private boolean change(
      String call, String key, Duration deadline, Stored guess, Function<Stored, Change> next) {
    Deadline until = Deadline.of(deadline, failures);
    try {
      Stored seen = guess == null ? look(call, key, until) : guess;
      while (true) {
        Change change = next.apply(seen);
        if (change == null || change.value == null && seen.value == null) {
          return change != null;
        }
        room(call, key, seen, change, until);
        TxnResponse response = commit(call, key, seen, change, until);
        if (response.isSucceeded()) {
          return true;
        }
        if (!owner.isIn(response)) {
          throw leftByOwner();
        }
        seen = Stored.of(response.getGetResponses().get(1), response.getHeader().getRevision());
      }
    } catch (Refusal refusal) {
      throw refusal.thrown(call, failures);
    }
  }

  private TxnResponse commit(String call, String key, Stored seen, Change change, Deadline until) {
    ByteSequence place = owner.keys().value(key);
    ByteSequence size = owner.keys().size(key);
    Cmp isSame = new Cmp(place, Cmp.Op.EQUAL, CmpTarget.modRevision(seen.modified));
    Op[] ops;
    if (change.value == null) {
      ops =
          new Op[] {
            Op.delete(place, DeleteOption.DEFAULT), Op.delete(size, DeleteOption.DEFAULT)
          };
    } else {
      PutOption option = PutOption.builder().withLeaseId(change.lease).build();
      ByteSequence bytes = ByteSequence.from(number(cost(key, change.value)));
      ops =
          new Op[] {
            Op.put(place, ByteSequence.from(change.value), option), Op.put(size, bytes, option)
          };
    }
    return requests.change(
        call,
        until,
        () ->
            kv.txn()
                .If(owner.isThere(), isSame)
                .Then(ops)
                .Else(owner.look(), Op.get(place, GetOption.DEFAULT))
                .commit());
  }

  /** Refuses what the store has no room for. */
  private void room(String call, String key, Stored seen, Change change, Deadline until) {
    long after = cost(key, change.value);
    long more = after - cost(key, seen.value);
    if (more <= 0 || unmeasured.addAndGet(after) <= UNMEASURED) {
      return;
    }
    ByteSequence size = owner.keys().size(key);
    long[] sums = new long[2];
    range(
        call,
        owner.keys().size(""),
        GetOption.DEFAULT,
        until,
        each ->
            sums[each.getKey().equals(size) ? 1 : 0] += number(each.getValue()));
    long others = sums[0];
    long own = sums[1];
    if (others + after > Limits.TOTAL) {
      throw Limits.full(others + own, after - own);
    }
    unmeasured.set(0);
  }

  /** Shows {@code each} of what begins with {@code prefix}, as it was at one revision of etcd. */
  private void range(
      String call, ByteSequence prefix, GetOption what, Deadline until, Consumer<KeyValue> each) {
    ByteSequence from = prefix;
    for (long revision = 0; ; ) {
      GetOption option =
          GetOption.builder()
              .withRange(Keys.end(prefix))
              .withKeysOnly(what.isKeysOnly())
              .withLimit(PAGE)
              .withRevision(revision)
              .build();
      Op page = Op.get(from, option);
      TxnResponse response =
          requests.read(
              call, until, () -> kv.txn().If(owner.isThere()).Then(page).commit());
      if (!response.isSucceeded()) {
        throw leftByOwner();
      }
      GetResponse part = response.getGetResponses().get(0);
      part.getKvs().forEach(each);
      if (!part.isMore()) {
        return;
      }
      if (revision == 0) {
        revision = response.getHeader().getRevision();
      }
      from = Keys.next(part.getKvs().get(part.getKvs().size() - 1).getKey());
    }
  }
}
