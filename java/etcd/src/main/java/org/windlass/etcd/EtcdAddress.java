// SPDX-License-Identifier: Apache-2.0
package org.windlass.etcd;

import java.util.List;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.windlass.internal.FailureMaker;
import org.windlass.internal.Native;

/**
 * The address of an etcd, and the prefix of its keys that is meant:
 * {@code etcd://HOST:PORT[,HOST:PORT]/PREFIX}. Several hosts are the members of one etcd, any of
 * which may be down.
 *
 * @param endpoints such as {@code 127.0.0.1:2379}
 * @param prefix without a slash at either end
 */
record EtcdAddress(List<String> endpoints, String prefix) {
  static final String SCHEME = "etcd";

  private static final int LAST_PORT = 65_535;
  private static final Pattern FORM =
      Pattern.compile("etcd://(?<endpoints>[^/]+)/(?<prefix>[A-Za-z0-9._-]+(/[A-Za-z0-9._-]+)*)/?");
  private static final Pattern ENDPOINT =
      Pattern.compile("([A-Za-z0-9.-]+|\\[[0-9A-Fa-f:.]+\\]):(?<port>[0-9]{1,5})");

  /** What {@code text} says; InvalidArgument where that is none. */
  static EtcdAddress parse(String text, FailureMaker failures) {
    Matcher form = FORM.matcher(text);
    if (!form.matches()) {
      throw wrong(
          text, "it has no endpoints, or no prefix of letters, digits and . _ - /", failures);
    }
    List<String> endpoints = List.of(form.group("endpoints").split(",", -1));
    for (String endpoint : endpoints) {
      Matcher parts = ENDPOINT.matcher(endpoint);
      if (!parts.matches() || !isPort(Integer.parseInt(parts.group("port")))) {
        throw wrong(text, "'" + endpoint + "' is no HOST:PORT", failures);
      }
    }
    return new EtcdAddress(endpoints, form.group("prefix"));
  }

  private static boolean isPort(int number) {
    return number >= 1 && number <= LAST_PORT;
  }

  private static RuntimeException wrong(String text, String why, FailureMaker failures) {
    return failures.make(
        Native.WL_INVALID_ARGUMENT,
        text + ": " + why + "; an address is etcd://HOST:PORT[,HOST:PORT]/PREFIX, such as"
            + " etcd://127.0.0.1:2379/windlass");
  }

  /** As jetcd takes them. */
  String[] uris() {
    return endpoints.stream().map(endpoint -> "http://" + endpoint).toArray(String[]::new);
  }

  /** The address as it was given. */
  @Override
  public String toString() {
    return SCHEME + "://" + String.join(",", endpoints) + "/" + prefix;
  }
}
