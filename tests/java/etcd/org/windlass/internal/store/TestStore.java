// SPDX-License-Identifier: Apache-2.0
package org.windlass.internal.store;

import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import org.windlass.etcd.Etcd;

/** A store under test, and its members, whom closing this closes. */
public final class TestStore implements AutoCloseable {
  public static final Duration LONG = Duration.ofSeconds(60);

  /** The stores that keep one contract. */
  public enum Kind {
    ETCD
  }

  private final Etcd etcd = Etcd.shared();
  private final String name = Etcd.newName();
  private final Store owner;
  private final List<Store> members = new ArrayList<>();

  public TestStore(Kind kind) {
    owner = etcd.connect(name, 0, 1, LONG);
  }

  /** One more member. */
  public Store join() {
    Store member = etcd.connect(name, -1, 0, LONG);
    synchronized (this) {
      members.add(member);
    }
    return member;
  }

  @Override
  public void close() {
    members.forEach(Store::close);
    owner.close();
  }
}
