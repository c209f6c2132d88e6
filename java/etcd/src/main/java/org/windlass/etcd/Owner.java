// SPDX-License-Identifier: Apache-2.0
package org.windlass.etcd;

import io.etcd.jetcd.ByteSequence;
import io.etcd.jetcd.KeyValue;
import io.etcd.jetcd.kv.TxnResponse;
import io.etcd.jetcd.op.Cmp;
import io.etcd.jetcd.op.CmpTarget;
import io.etcd.jetcd.op.Op;
import io.etcd.jetcd.options.GetOption;
import java.util.List;

/**
 * Who has a store, as etcd tells it from those before and after.
 *
 * @param key where it says so
 * @param created the revision at which it did
 * @param lease under which, for all that has no lease of its own
 * @param keys of its store
 */
record Owner(ByteSequence key, long created, long lease, Keys keys) {
  static Owner of(String root, long created, long lease) {
    return new Owner(Keys.owner(root), created, lease, new Keys(root, lease));
  }

  /** That it is still there. */
  Cmp isThere() {
    return new Cmp(key, Cmp.Op.EQUAL, CmpTarget.createRevision(created));
  }

  /** What tells {@link #isIn} whether it is. */
  Op look() {
    return Op.get(key, GetOption.builder().withKeysOnly(true).build());
  }

  /** Whether it was there at a transaction which began what it gets with {@link #look}. */
  boolean isIn(TxnResponse response) {
    return isIn(response.getGetResponses().get(0).getKvs());
  }

  /** Whether it is what lies at {@link #key}. */
  boolean isIn(List<KeyValue> found) {
    return !found.isEmpty() && found.get(0).getCreateRevision() == created;
  }
}
