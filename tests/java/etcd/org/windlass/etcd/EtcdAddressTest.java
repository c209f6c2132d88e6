// SPDX-License-Identifier: Apache-2.0
package org.windlass.etcd;

import static org.assertj.core.api.Assertions.assertThat;
import static org.windlass.internal.store.Failure.assertFails;

import java.util.Map;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;
import org.windlass.internal.Native;
import org.windlass.internal.store.StoreProviders;

/** Addresses and variables of etcds: what they say, and what is wrong with them. */
class EtcdAddressTest {
  @Test
  void anAddressHasEndpointsAndAPrefix() {
    EtcdAddress one = EtcdAddress.parse("etcd://127.0.0.1:2379/windlass");
    assertThat(one.endpoints()).containsExactly("127.0.0.1:2379");
    assertThat(one.prefix()).isEqualTo("windlass");
    EtcdAddress three =
        EtcdAddress.parse("etcd://a-1.b:1,[::1]:65535,10.0.0.1:2379/a/b_c/d.e/");
    assertThat(three.endpoints()).containsExactly("a-1.b:1", "[::1]:65535", "10.0.0.1:2379");
    assertThat(three.prefix()).isEqualTo("a/b_c/d.e");
    assertThat(three).hasToString("etcd://a-1.b:1,[::1]:65535,10.0.0.1:2379/a/b_c/d.e");
  }

  @ParameterizedTest
  @ValueSource(
      strings = {
        "etcd://",
        "etcd:///p",
        "etcd://h:1",
        "etcd://h:1/",
        "etcd://h:1//p",
        "etcd://h:1/p//q",
        "etcd://h:1/p q",
        "etcd://h/p",
        "etcd://h:/p",
        "etcd://h:0/p",
        "etcd://h:65536/p",
        "etcd://h:1,/p",
        "etcd://::1:1/p",
        "http://h:1/p"
      })
  void anotherTextIsRefused(String text) {
    assertFails(Native.WL_INVALID_ARGUMENT, () -> EtcdAddress.parse(text))
        .contains(text, "etcd://127.0.0.1:2379/windlass");
  }

  @Test
  void aUserWithoutAPasswordIsRefused() {
    EtcdAddress address = EtcdAddress.parse("etcd://h:1/p");
    for (String name : new String[] {EtcdConnection.USER, EtcdConnection.PASSWORD}) {
      assertFails(
              Native.WL_INVALID_ARGUMENT,
              () -> new EtcdConnection(address, Map.of(name, "secret")))
          .contains(EtcdConnection.USER, EtcdConnection.PASSWORD)
          .doesNotContain("secret");
    }
  }

  @Test
  void theLibraryFindsItByItsAddresses() {
    assertThat(StoreProviders.of("etcd://h:1/p")).isInstanceOf(EtcdProvider.class);
    assertFails(Native.WL_UNSUPPORTED, () -> StoreProviders.of("consul://h:1/p"))
        .contains("consul://h:1/p", "windlass-etcd");
  }
}
