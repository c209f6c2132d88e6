// SPDX-License-Identifier: Apache-2.0
package org.windlass.internal.store;

import java.util.List;
import java.util.ServiceConfigurationError;
import java.util.ServiceLoader;
import org.windlass.internal.FailureMaker;
import org.windlass.internal.Native;

/** The kinds of stores that artifacts on the class path or module path bring along. */
public final class StoreProviders {
  private StoreProviders() {}

  /** The one for {@code address}; Unsupported where none is on the class path or module path. */
  public static StoreProvider of(String address, FailureMaker failures) {
    String scheme = address.substring(0, address.indexOf("://"));
    try {
      // Beside this library's own classes; the thread's loader may know others.
      for (StoreProvider provider :
          ServiceLoader.load(StoreProvider.class, StoreProvider.class.getClassLoader())) {
        if (provider.scheme().equals(scheme)) {
          return provider;
        }
      }
    } catch (ServiceConfigurationError | LinkageError e) {
      throw failures.make(
          Native.WL_UNSUPPORTED,
          "what brings a store for " + scheme + ":// addresses can't be loaded: " + e,
          e,
          "",
          List.of());
    }
    throw failures.make(
        Native.WL_UNSUPPORTED,
        "nothing on the class path has a store for " + address
            + "; for an address that begins with etcd://, add the artifact"
            + " org.windlass:windlass-etcd of this library's version");
  }
}
