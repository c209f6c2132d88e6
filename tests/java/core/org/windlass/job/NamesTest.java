// SPDX-License-Identifier: Apache-2.0
package org.windlass.job;

import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.time.Duration;
import java.util.Map;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;
import org.windlass.Communicator;
import org.windlass.CommunicatorOptions;
import org.windlass.LocalGroup;
import org.windlass.error.InvalidArgumentException;
import org.windlass.layout.DeviceMesh;
import org.windlass.link.Link;

@Timeout(60)
class NamesTest {
  private static final Duration SOON = Duration.ofSeconds(20);

  @ParameterizedTest
  @ValueSource(
      strings = {
        "", "/", "a/b", "a\n", "\t", "\u001b[31m", "\u0085", "\u202e", "\u2028", "a\ud800",
        "1234567890123456789012345678901234567890123456789012345678901234x",
        "\u00e9\u00e9\u00e9\u00e9\u00e9\u00e9\u00e9\u00e9\u00e9\u00e9\u00e9\u00e9\u00e9\u00e9\u00e9"
            + "\u00e9\u00e9\u00e9\u00e9\u00e9\u00e9\u00e9\u00e9\u00e9\u00e9\u00e9\u00e9\u00e9\u00e9"
            + "\u00e9\u00e9\u00e9\u00e9"
      })
  void whatIsNoNameIsRefusedAndShownInLettersThatPrint(String name) {
    DeviceMesh one = DeviceMesh.of(1);
    try (LocalGroup group = LocalGroup.of(1)) {
      Communicator comm = group.communicators().get(0);
      assertThatThrownBy(() -> Link.open(comm, name, one, one))
          .isInstanceOf(InvalidArgumentException.class)
          .hasMessageMatching("name: '[^\\p{Cc}\\p{Cf}\\p{Zl}\\p{Zp}]{0,67}' is not a valid name; .*");
      assertThatThrownBy(
              () -> Job.of(name, comm, CommunicatorOptions.defaults(), Map.of(), SOON))
          .isInstanceOf(InvalidArgumentException.class)
          .hasMessageStartingWith("name: '");
    }
  }

  @Test
  void aNameMayBeOfAnyScript() {
    DeviceMesh one = DeviceMesh.of(1);
    try (LocalGroup group = LocalGroup.of(1)) {
      group.run(comm -> Link.open(comm, "\u91cd\u307f \u00e9-1.w", one, one).close());
    }
  }
}
