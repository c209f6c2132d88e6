// SPDX-License-Identifier: Apache-2.0
package org.windlass.etcd;

import io.etcd.jetcd.ByteSequence;
import io.etcd.jetcd.Client;
import io.etcd.jetcd.KV;
import io.etcd.jetcd.KeyValue;
import io.etcd.jetcd.kv.GetResponse;
import io.etcd.jetcd.kv.TxnResponse;
import io.etcd.jetcd.op.Cmp;
import io.etcd.jetcd.op.CmpTarget;
import io.etcd.jetcd.op.Op;
import io.etcd.jetcd.options.GetOption;
import io.etcd.jetcd.options.PutOption;
import java.util.List;
import java.util.UUID;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;
import org.windlass.internal.Deadline;
import org.windlass.internal.FailureMaker;
import org.windlass.internal.Native;
import org.windlass.internal.store.Member;

/**
 * The way into a store in etcd, on the calling thread. Rank 0 becomes its owner; another waits for
 * an owner, says that it is there, and is in once the owner has said that it has seen that: so what
 * a process left behind that was killed is taken for nobody who lives. Where such a key is in the
 * way, it goes with its lease; one that stays longer is somebody's who lives.
 */
final class Entrance {
  /** Beyond its lease, how long a key is waited for to go. */
  private static final long GRACE_NS = TimeUnit.SECONDS.toNanos(2);

  private static final List<Integer> OWNER = List.of(0);

  private final Client client;
  private final KV kv;
  private final Requests requests;
  private final KeptLease lease;
  private final String root;
  private final Member member;
  private final Deadline until;
  private final FailureMaker failures;
  private final String call;
  private final long patienceNs;

  /** When a key was in the way first; 0 for never. */
  private long impatientNs;

  /**
   * To one store.
   *
   * @param root what its keys begin with
   * @param address of it, as errors name it
   * @param leaseSeconds that members' leases run
   */
  Entrance(
      Client client,
      Requests requests,
      KeptLease lease,
      String root,
      String address,
      Member member,
      long leaseSeconds,
      Deadline until,
      FailureMaker failures) {
    this.client = client;
    this.kv = client.getKVClient();
    this.requests = requests;
    this.lease = lease;
    this.root = root;
    this.member = member;
    this.until = until;
    this.failures = failures;
    this.call = "connect to the store at " + address + " as " + member;
    this.patienceNs = TimeUnit.SECONDS.toNanos(leaseSeconds) + GRACE_NS;
  }

  /** The owner of the store that this member is in now. */
  Owner enter() {
    if (member.rank() == 0) {
      return open();
    }
    while (true) {
      Owner owner = found();
      if (isAdmitted(owner)) {
        return owner;
      }
    }
  }

  private Owner open() {
    ByteSequence key = Keys.owner(root);
    ByteSequence own = Statement.of(member).toBytes();
    while (true) {
      TxnResponse response =
          requests.change(
              call,
              until,
              () ->
                  kv.txn()
                      .If(isAbsent(key))
                      .Then(put(key, own))
                      .Else(Op.get(key, GetOption.DEFAULT))
                      .commit());
      long revision = response.getHeader().getRevision();
      if (response.isSucceeded()) {
        return Owner.of(root, revision, lease.id());
      }
      awaitGone(key, response.getGetResponses().get(0), revision);
    }
  }

  private Owner found() {
    ByteSequence key = Keys.owner(root);
    while (true) {
      GetResponse response = requests.read(call, until, () -> kv.get(key));
      if (!response.getKvs().isEmpty()) {
        KeyValue found = response.getKvs().get(0);
        compare(Statement.of(found.getValue()));
        return Owner.of(root, found.getCreateRevision(), found.getLease());
      }
      try (Watching watching = watching(key, response.getHeader().getRevision())) {
        requests.await(call, "rank 0 has not come to ", OWNER, until, watching.changed());
      }
    }
  }

  private void compare(Statement owner) {
    if (owner.protocol() != Statement.PROTOCOL) {
      throw mismatch(
          owner.who() + " runs windlass " + owner.library() + ", which meets by protocol "
              + owner.protocol() + " there; this one runs " + member.library() + ", by protocol "
              + Statement.PROTOCOL + "; use one version on all ranks");
    }
  }

  /** False where that owner has gone. */
  private boolean isAdmitted(Owner owner) {
    String who =
        member.rank() > 0 ? String.valueOf(member.rank()) : "observer-" + UUID.randomUUID();
    ByteSequence place = owner.keys().member(who);
    // Its lease tells this statement from one that a process of this rank made before.
    ByteSequence own =
        Statement.of(member).toBytes().concat(lease.name());
    while (true) {
      TxnResponse response =
          requests.change(
              call,
              until,
              () ->
                  kv.txn()
                      .If(owner.isThere(), isAbsent(place))
                      .Then(put(place, own))
                      .Else(owner.look(), Op.get(place, GetOption.DEFAULT))
                      .commit());
      if (response.isSucceeded()) {
        break;
      }
      if (!owner.isIn(response)) {
        return false;
      }
      awaitGone(place, response.getGetResponses().get(1), response.getHeader().getRevision());
    }
    while (true) {
      ByteSequence answer = owner.keys().admitted(who);
      TxnResponse response =
          requests.read(
              call,
              until,
              () ->
                  kv.txn().If(owner.isThere()).Then(Op.get(answer, GetOption.DEFAULT)).commit());
      if (!response.isSucceeded()) {
        return false;
      }
      List<KeyValue> said = response.getGetResponses().get(0).getKvs();
      if (!said.isEmpty() && said.get(0).getValue().equals(own)) {
        return true;
      }
      long revision = response.getHeader().getRevision();
      try (Watching answered = watching(answer, revision);
          Watching gone = watching(owner.key(), revision)) {
        CompletableFuture<Object> either =
            CompletableFuture.anyOf(answered.changed(), gone.changed());
        requests.await(call, "no word of rank 0 in ", OWNER, until, either);
      }
    }
  }

  /** Waits for a change of what is in the way, for as long as it may be a killed process's. */
  private void awaitGone(ByteSequence key, GetResponse found, long revision) {
    String other = Statement.of(found.getKvs().get(0).getValue()).who();
    long now = System.nanoTime();
    if (impatientNs == 0) {
      impatientNs = now;
    }
    long restNs = patienceNs - (now - impatientNs);
    if (restNs <= 0) {
      throw mismatch(
          other + " is there already, and two may not have one rank; where that is another job,"
              + " give each a WINDLASS_JOB of its own");
    }
    try (Watching watching = watching(key, revision)) {
      watching.changed().completeOnTimeout(null, restNs, TimeUnit.NANOSECONDS);
      requests.await(
          call, other + " is there already, in ", List.of(), until, watching.changed());
    }
  }

  private RuntimeException mismatch(String text) {
    return failures.make(Native.WL_MISMATCH, call + ": " + text);
  }

  private Watching watching(ByteSequence key, long revision) {
    return new Watching(client, key, revision + 1);
  }

  private static Cmp isAbsent(ByteSequence key) {
    return new Cmp(key, Cmp.Op.EQUAL, CmpTarget.version(0));
  }

  private Op put(ByteSequence key, ByteSequence value) {
    return Op.put(key, value, PutOption.builder().withLeaseId(lease.id()).build());
  }
}
