// SPDX-License-Identifier: Apache-2.0
package org.windlass.etcd;

import io.etcd.jetcd.ByteSequence;
import io.etcd.jetcd.KeyValue;
import io.etcd.jetcd.kv.GetResponse;
import io.etcd.jetcd.kv.TxnResponse;
import io.etcd.jetcd.op.Op;
import io.etcd.jetcd.options.GetOption;
import io.etcd.jetcd.options.PutOption;
import java.time.Duration;
import java.util.List;
import java.util.UUID;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;
import java.util.function.Function;
import org.windlass.error.MismatchException;
import org.windlass.internal.Deadline;
import org.windlass.internal.store.Member;
import org.windlass.internal.store.Sockets;

/**
 * Admits a member to a store in etcd. Rank 0 becomes the owner. Every other member waits for an
 * owner, puts a {@link Statement} about itself, and waits until the owner has copied the statement.
 *
 * <p>So a member never treats the key of a killed process as the key of an owner. If another
 * process has the key that a member needs, the member waits until the key's lease would expire. If
 * the key still exists then, its process is alive.
 */
record Admission(
    EtcdConnection etcd, KeptLease lease, Owner nobody, Member member, Call call) {
  /** Time that a member waits for keys of a killed process, in addition to the term of a lease. */
  private static final Duration GRACE = Duration.ofSeconds(2);

  private static final List<Integer> RANK_ZERO = List.of(0);

  Owner enter() {
    ByteSequence own = Statement.of(member).toBytes(lease.id());
    if (member.rank() == 0) {
      return new Owner(nobody.root(), claim(nobody, nobody.key(), own), lease.id());
    }
    String who = member.rank() > 0 ? "" + member.rank() : "observer-" + UUID.randomUUID();
    while (true) {
      Owner owner = awaitOwner();
      if (claim(owner, owner.member(who), own) > 0 && isAdmitted(owner, who, own)) {
        return owner;
      }
    }
  }

  /** Admits members to the store that this process owns, until the connection ends. */
  static void admitOthers(EtcdConnection etcd, Owner owner) {
    Call call = new Call("admission", Deadline.of(Duration.ofDays(36_500)));
    Sockets.daemon(() -> admit(etcd, owner, call), "windlass-store-etcd-admission").start();
  }

  private static void admit(EtcdConnection etcd, Owner owner, Call call) {
    ByteSequence members = owner.member("");
    PutOption option = PutOption.builder().withLeaseId(owner.lease()).build();
    Function<KeyValue, CompletableFuture<?>> copy =
        found -> etcd.kv().put(owner.admitted(found.getKey()), found.getValue(), option);
    GetOption.Builder newer = GetOption.builder().isPrefix(true);
    try {
      for (long seen = 0; ; ) {
        GetOption after = newer.withMinModRevision(seen + 1).build();
        GetResponse found = etcd.read(call, () -> etcd.kv().get(members, after));
        List<KeyValue> statements = found.getKvs();
        etcd.read(
            call,
            () ->
                CompletableFuture.allOf(
                    statements.stream().map(copy).toArray(CompletableFuture[]::new)));
        seen = found.getHeader().getRevision();
        etcd.await(call, "no member in ", List.of(), etcd.nextChange(seen, true, members));
      }
    } catch (RuntimeException | Error e) {
      etcd.lost(EtcdConnection.text(e));
    }
  }

  /**
   * Puts a key under this member's lease. Waits while another process has the key.
   *
   * @return etcd's revision after the put; 0 if the store no longer has this owner
   */
  private long claim(Owner owner, ByteSequence key, ByteSequence value) {
    Op put = Op.put(key, value, PutOption.builder().withLeaseId(lease.id()).build());
    Deadline patience = null; // begins when the key is first in the way
    while (true) {
      TxnResponse response = owner.change(etcd, call, key, 0, put);
      long revision = response.getHeader().getRevision();
      if (response.isSucceeded()) {
        return revision;
      }
      List<GetResponse> found = response.getGetResponses();
      if (owner.created() > 0 && !owner.isIn(found.get(1).getKvs())) {
        return 0;
      }
      String other = Statement.of(found.get(0).getKvs().get(0).getValue()).who();
      patience = patience == null ? Deadline.of(lease.term().plus(GRACE)) : patience;
      if (patience.isOver()) {
        throw mismatch(
            other + " is there already, and two processes can't have the same rank; if it belongs"
                + " to another job, give each job its own WINDLASS_JOB");
      }
      CompletableFuture<Void> change = etcd.nextChange(revision, false, key);
      change.completeOnTimeout(null, patience.leftNs(), TimeUnit.NANOSECONDS);
      etcd.await(call, other + " is there already, in ", List.of(), change);
    }
  }

  private Owner awaitOwner() {
    Op get = Op.get(nobody.key(), GetOption.DEFAULT);
    return etcd.await(
        call, "rank 0 has not come to ", RANK_ZERO,
        () -> etcd.read(call, () -> etcd.kv().txn().Then(get).commit()),
        response -> {
          List<KeyValue> found = response.getGetResponses().get(0).getKvs();
          if (found.isEmpty()) {
            return null;
          }
          KeyValue first = found.get(0);
          requireSameProtocol(Statement.of(first.getValue()));
          return new Owner(nobody.root(), first.getCreateRevision(), first.getLease());
        },
        nobody.key());
  }

  private void requireSameProtocol(Statement owner) {
    if (owner.protocol() != Statement.PROTOCOL) {
      throw mismatch(
          owner.who() + " runs windlass " + owner.library() + ", which joins by protocol "
              + owner.protocol() + " there; this one runs " + member.library() + ", by protocol "
              + Statement.PROTOCOL + "; use one version on all ranks");
    }
  }

  /**
   * Waits until the owner has copied this member's statement. Returns false if the store no longer
   * has this owner.
   *
   * @param who the member's name in the keys
   */
  private boolean isAdmitted(Owner owner, String who, ByteSequence own) {
    ByteSequence answer = owner.admitted(who);
    return etcd.await(
        call, "no word of rank 0 in ", RANK_ZERO,
        () -> owner.read(etcd, call, Op.get(answer, GetOption.DEFAULT)),
        response -> {
          if (!response.isSucceeded()) {
            return false;
          }
          List<KeyValue> found = response.getGetResponses().get(0).getKvs();
          return !found.isEmpty() && found.get(0).getValue().equals(own) ? true : null;
        },
        answer, owner.key());
  }

  private RuntimeException mismatch(String text) {
    return new MismatchException(call.name() + ": " + text);
  }
}
