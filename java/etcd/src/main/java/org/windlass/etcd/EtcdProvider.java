// SPDX-License-Identifier: Apache-2.0
package org.windlass.etcd;

import java.time.Duration;
import java.util.Map;
import org.windlass.error.UnsupportedException;
import org.windlass.internal.Deadline;
import org.windlass.internal.store.Member;
import org.windlass.internal.store.Store;
import org.windlass.internal.store.StoreProvider;

/** Provides stores in etcd. {@link EtcdAddress} has the form of their addresses. */
public final class EtcdProvider implements StoreProvider {
  private final long leaseSeconds; // seconds for which the keys of a killed process stay at most

  public EtcdProvider() {
    this(10);
  }

  /**
   * Creates a provider. All members of a store must use the same term of leases.
   *
   * @param leaseSeconds that term in seconds
   */
  EtcdProvider(long leaseSeconds) {
    this.leaseSeconds = leaseSeconds;
  }

  @Override
  public String scheme() {
    return EtcdAddress.SCHEME;
  }

  @Override
  public Store connect(
      String address, String name, Member member, Map<String, String> variables,
      Duration deadline) {
    EtcdAddress parsed = EtcdAddress.parse(address);
    String text = "connect to the store at " + parsed + " as " + member;
    Call call = new Call(text, Deadline.of(deadline));
    try {
      EtcdConnection etcd = new EtcdConnection(parsed, variables);
      try {
        return enter(etcd, parsed.prefix() + "/" + name + "/", member, call);
      } catch (Throwable e) {
        etcd.close();
        throw e;
      }
    } catch (NoClassDefFoundError e) {
      throw new UnsupportedException(
          "windlass-etcd is on the class path without what it depends on: " + e.getMessage()
              + "; add io.etcd:jetcd-core with its dependencies, as Maven does",
          e);
    }
  }

  private EtcdStore enter(EtcdConnection etcd, String root, Member member, Call call) {
    KeptLease lease = etcd.keepLease(leaseSeconds, call);
    Owner owner = new Admission(etcd, lease, new Owner(root, 0, 0), member, call).enter();
    if (member.rank() == 0) {
      Admission.admitOthers(etcd, owner);
    }
    return new EtcdStore(etcd, lease, owner);
  }
}
