// SPDX-License-Identifier: Apache-2.0
package org.windlass.bench.data;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;
import org.windlass.error.InvalidArgumentException;

class ByteSizeTest {
  @ParameterizedTest
  @CsvSource({"4,4", "1000,1000", "64K,65536", "1M,1048576", "3G,3221225472", "1536,1536"})
  void readsAndWrites(String text, long bytes) {
    assertThat(ByteSize.parse("--bytes", text)).isEqualTo(bytes);
    assertThat(ByteSize.format(bytes)).isEqualTo(text);
  }

  @ParameterizedTest
  @ValueSource(strings = {"64k", "1m"})
  void takesSmallLetters(String text) {
    assertThat(ByteSize.parse("--bytes", text))
        .isEqualTo(ByteSize.parse("--bytes", text.toUpperCase(java.util.Locale.ROOT)));
  }

  @ParameterizedTest
  @ValueSource(strings = {"", "K", "0", "-4", "4.5", "0x10", "9223372036854775807K", "4 K", "4KK"})
  void refusesWhatIsNoSize(String text) {
    assertThatThrownBy(() -> ByteSize.parse("--bytes", text))
        .isInstanceOf(InvalidArgumentException.class)
        .hasMessageContaining("--bytes")
        .hasMessageContaining("'" + text + "'");
  }
}
