// SPDX-License-Identifier: Apache-2.0
package org.windlass.etcd;

import java.time.Duration;
import java.util.List;
import java.util.Map;
import org.windlass.internal.FailureMaker;
import org.windlass.internal.Native;
import org.windlass.internal.store.Member;
import org.windlass.internal.store.Store;
import org.windlass.internal.store.StoreProvider;

/** The stores whose addresses begin with {@code etcd://}; {@link EtcdAddress} has their form. */
public final class EtcdProvider implements StoreProvider {
  @Override
  public String scheme() {
    return EtcdAddress.SCHEME;
  }

  @Override
  public Store connect(
      String address,
      String name,
      Member member,
      Map<String, String> variables,
      Duration deadline,
      FailureMaker failures) {
    EtcdAddress place = EtcdAddress.parse(address, failures);
    try {
      EtcdAccess access = EtcdAccess.of(variables, failures);
      return EtcdStore.connect(
          place, access, name, member, deadline, EtcdStore.LEASE_SECONDS, failures);
    } catch (NoClassDefFoundError e) {
      throw failures.make(
          Native.WL_UNSUPPORTED,
          "windlass-etcd is on the class path without what it depends on: "
              + e.getMessage()
              + "; add io.etcd:jetcd-core with its dependencies, as Maven does",
          e,
          "",
          List.of());
    }
  }
}
