// SPDX-License-Identifier: Apache-2.0
package org.windlass.etcd;

import io.etcd.jetcd.ByteSequence;
import io.etcd.jetcd.KeyValue;
import io.etcd.jetcd.kv.TxnResponse;
import io.etcd.jetcd.op.Cmp;
import io.etcd.jetcd.op.CmpTarget;
import io.etcd.jetcd.op.Op;
import io.etcd.jetcd.options.GetOption;
import java.nio.charset.StandardCharsets;
import java.util.List;

/**
 * The owner of a store in etcd, and the keys of that store.
 *
 * <pre>
 * PREFIX/NAME/owner                  statement of the owner, under its lease
 * PREFIX/NAME/LEASE/member/WHO       statement of a member that wants to enter, under its lease
 * PREFIX/NAME/LEASE/admitted/WHO     copy of that statement, which the owner has made
 * PREFIX/NAME/LEASE/value/KEY        value of a key of the store
 * </pre>
 *
 * <p>LEASE is the owner's lease in hexadecimal digits. Since etcd never gives out a lease twice,
 * successive owners share no keys. A key that no member holds has the owner's lease. So no key
 * outlives the processes of its store.
 *
 * @param root the prefix {@code PREFIX/NAME/}
 * @param created the revision of etcd at which the owner's key was created; 0 for no owner
 * @param lease the owner's lease
 */
record Owner(String root, long created, long lease) {
  ByteSequence key() {
    return utf8(root + "owner");
  }

  /** Returns the condition of a transaction that the store still has this owner. */
  private Cmp isPresent() {
    return new Cmp(key(), Cmp.Op.EQUAL, CmpTarget.createRevision(created));
  }

  /** Returns true if {@code found}, the result of reading {@link #key()}, is this owner's key. */
  boolean isIn(List<KeyValue> found) {
    return !found.isEmpty() && found.get(0).getCreateRevision() == created;
  }

  /** Reads from the store. The transaction fails if the store no longer has this owner. */
  TxnResponse read(EtcdConnection etcd, Call call, Op... ops) {
    return etcd.read(call, () -> etcd.kv().txn().If(isPresent()).Then(ops).commit());
  }

  /**
   * Changes a key in a transaction. The transaction fails if the store no longer has this owner, or
   * if the key has changed since revision {@code modified}. If it fails, it reads both keys.
   *
   * @param modified etcd's revision of the key's last change; 0 for an absent key
   */
  TxnResponse change(
      EtcdConnection etcd, Call call, ByteSequence key, long modified, Op op) {
    Cmp isSame = new Cmp(key, Cmp.Op.EQUAL, CmpTarget.modRevision(modified));
    Op read = Op.get(key, GetOption.DEFAULT);
    Op readOwner = Op.get(key(), GetOption.DEFAULT);
    return etcd.change(
        call,
        () -> etcd.kv().txn().If(isPresent(), isSame).Then(op).Else(read, readOwner).commit());
  }

  /**
   * Returns the key of a member's statement. If {@code who} is empty, returns the prefix of the
   * statements of all members.
   */
  ByteSequence member(String who) {
    return place("member/", who);
  }

  ByteSequence admitted(String who) {
    return place("admitted/", who);
  }

  ByteSequence admitted(ByteSequence member) {
    return admitted(rest(member(""), member));
  }

  ByteSequence value(String key) {
    return place("value/", key);
  }

  String keyOf(ByteSequence place) {
    return rest(value(""), place);
  }

  private ByteSequence place(String kind, String name) {
    return utf8(root + Long.toHexString(lease) + "/" + kind + name);
  }

  private static String rest(ByteSequence prefix, ByteSequence key) {
    return key.substring(prefix.size()).toString(StandardCharsets.UTF_8);
  }

  static ByteSequence utf8(String text) {
    return ByteSequence.from(text, StandardCharsets.UTF_8);
  }
}
