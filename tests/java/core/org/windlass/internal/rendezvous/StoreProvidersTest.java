// SPDX-License-Identifier: Apache-2.0
package org.windlass.internal.rendezvous;

import static org.assertj.core.api.Assertions.assertThat;

import java.util.Map;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;
import org.windlass.internal.Native;
import org.windlass.internal.store.Failure;
import org.windlass.internal.store.StoreProviders;

/** Addresses of stores that settings name. */
class StoreProvidersTest {
  private static final String WRONG = "X is no address of a store";

  @ParameterizedTest
  @ValueSource(strings = {"etcd://h:1,[::1]:2/p/q", "a9://!"})
  void whatIsOneIsTaken(String text) {
    assertThat(StoreProviders.address("X", text)).contains(text);
  }

  @ParameterizedTest
  @ValueSource(strings = {"127.0.0.1:29500", "demo", ""})
  void whatIsSomethingElseIsNone(String text) {
    assertThat(StoreProviders.address("X", text)).isEmpty();
  }

  @ParameterizedTest
  @ValueSource(strings = {"etcd://", "Etcd://h:1", "etcd://h 1", "etcd://user:secret@h:1/p"})
  void whatIsNoneIsRefusedAndNotShown(String text) {
    Failure.assertFails(
            Native.WL_INVALID_ARGUMENT, () -> StoreProviders.address("X", text))
        .startsWith(WRONG)
        .doesNotContain("secret");
  }

  @Test
  void jobsKeepTheirPasswordToThemselves() {
    Map<String, String> environment =
        Map.of("WINDLASS_LINK_RENDEZVOUS", "etcd://user:secret@h:1/p");
    Failure.assertFails(
            Native.WL_INVALID_ARGUMENT,
            () -> new LinkRendezvous(environment, "1").close())
        .startsWith("WINDLASS_LINK_RENDEZVOUS is no address of a store")
        .doesNotContain("secret");
  }
}
