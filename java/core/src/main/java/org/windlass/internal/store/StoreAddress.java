// SPDX-License-Identifier: Apache-2.0
package org.windlass.internal.store;

import java.util.Optional;
import java.util.regex.Pattern;
import org.windlass.internal.FailureMaker;
import org.windlass.internal.Native;

/** The address of a store that an artifact of its own brings along, as settings have it. */
public final class StoreAddress {
  private static final Pattern TEXT = Pattern.compile("[a-z][a-z0-9]*://[!-~&&[^@]]{1,1000}");

  private StoreAddress() {}

  /**
   * {@code text}, where it is one; empty where it is something else, such as HOST:PORT.
   * InvalidArgument, which doesn't show it, for one that holds what none has.
   *
   * @param setting where {@code text} stands
   */
  public static Optional<String> parse(String setting, String text, FailureMaker failures) {
    if (!text.contains("://")) {
      return Optional.empty();
    }
    if (!TEXT.matcher(text).matches()) {
      // Which may have a password.
      throw failures.make(
          Native.WL_INVALID_ARGUMENT,
          setting
              + " is no address of a store, such as etcd://10.0.0.1:2379/windlass: it has at most"
              + " 1000 letters of ASCII behind ://, and neither user nor password");
    }
    return Optional.of(text);
  }
}
