// SPDX-License-Identifier: Apache-2.0
package org.windlass.internal.store;

import java.util.Optional;
import java.util.ServiceConfigurationError;
import java.util.ServiceLoader;
import java.util.regex.Pattern;
import org.windlass.error.InvalidArgumentException;
import org.windlass.error.UnsupportedException;

/** Finds the store providers on the class path or module path, and checks their addresses. */
public final class StoreProviders {
  private static final Pattern ADDRESS = Pattern.compile("[a-z][a-z0-9]*://[!-~&&[^@]]{1,1000}");

  private StoreProviders() {}

  /**
   * Returns the checked address of a provided store. Empty for other values of the setting, such as
   * HOST:PORT.
   *
   * @param setting name of the setting with the text
   * @throws org.windlass.error.InvalidArgumentException if the address is malformed; the message
   *     does not show it
   */
  public static Optional<String> address(String setting, String text) {
    if (!text.contains("://")) {
      return Optional.empty();
    }
    if (!ADDRESS.matcher(text).matches()) {
      // The message does not show the text, which may contain a password.
      throw new InvalidArgumentException(
          setting + " is no address of a store, such as etcd://10.0.0.1:2379/windlass: it has at"
              + " most 1000 letters of ASCII behind ://, and neither user nor password");
    }
    return Optional.of(text);
  }

  public static StoreProvider of(String address) {
    String scheme = address.substring(0, address.indexOf("://"));
    try {
      // The thread's class loader may have providers that this library's class loader lacks.
      for (StoreProvider provider :
          ServiceLoader.load(StoreProvider.class, StoreProvider.class.getClassLoader())) {
        if (provider.scheme().equals(scheme)) {
          return provider;
        }
      }
    } catch (ServiceConfigurationError | LinkageError e) {
      String text = "the provider of stores for " + scheme + ":// addresses can't be loaded: " + e;
      throw new UnsupportedException(text, e);
    }
    throw new UnsupportedException(
        "no artifact on the class path provides a store for " + address
            + "; for an address that begins with etcd://, add the artifact"
            + " org.windlass:windlass-etcd of this library's version");
  }
}
