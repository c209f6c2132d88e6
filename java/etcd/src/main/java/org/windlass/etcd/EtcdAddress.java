// SPDX-License-Identifier: Apache-2.0
package org.windlass.etcd;

import java.util.List;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.windlass.error.InvalidArgumentException;
import org.windlass.internal.store.HostAndPort;

/**
 * The address of an etcd, and the prefix of the store's keys in it: {@code
 * etcd://HOST:PORT[,HOST:PORT]/PREFIX}. Several hosts are servers of the same etcd. Any of them may
 * be down.
 *
 * @param endpoints such as {@code 127.0.0.1:2379}
 * @param prefix prefix without a slash at either end
 */
record EtcdAddress(List<String> endpoints, String prefix) {
  static final String SCHEME = "etcd";

  private static final Pattern FORM =
      Pattern.compile("etcd://(?<endpoints>[^/]+)/(?<prefix>[A-Za-z0-9._-]+(/[A-Za-z0-9._-]+)*)/?");
  private static final Pattern ENDPOINT =
      Pattern.compile("([A-Za-z0-9.-]+|\\[[0-9A-Fa-f:.]+\\]):(?<port>[0-9]{1,5})");

  static EtcdAddress parse(String text) {
    Matcher form = FORM.matcher(text);
    String wrong = "it has no endpoints, or no prefix of letters, digits and . _ - /";
    if (form.matches()) {
      List<String> endpoints = List.of(form.group("endpoints").split(",", -1));
      EtcdAddress address = new EtcdAddress(endpoints, form.group("prefix"));
      List<String> others = endpoints.stream().filter(each -> !isHostAndPort(each)).toList();
      if (others.isEmpty()) {
        return address;
      }
      wrong = "'" + others.get(0) + "' is no HOST:PORT";
    }
    throw new InvalidArgumentException(
        text + ": " + wrong + "; an address is etcd://HOST:PORT[,HOST:PORT]/PREFIX, such as"
            + " etcd://127.0.0.1:2379/windlass");
  }

  private static boolean isHostAndPort(String endpoint) {
    Matcher parts = ENDPOINT.matcher(endpoint);
    int port = parts.matches() ? Integer.parseInt(parts.group("port")) : 0;
    return port >= 1 && port <= HostAndPort.LAST_PORT;
  }

  String[] uris() {
    return endpoints.stream().map(endpoint -> "http://" + endpoint).toArray(String[]::new);
  }

  @Override
  public String toString() {
    return SCHEME + "://" + String.join(",", endpoints) + "/" + prefix;
  }
}
