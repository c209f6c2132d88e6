// SPDX-License-Identifier: Apache-2.0
package org.windlass.internal;

import static org.assertj.core.api.Assertions.assertThat;

import org.junit.jupiter.api.Test;

class WrappedTest {
  @Test
  void linesFitATerminalAndBeginBelowTheFirst() {
    assertThat(Wrapped.text("name  ", "a text")).isEqualTo("name  a text");
    String word = "w".repeat(36);
    assertThat(Wrapped.text("name  ", word + " " + word + " next"))
        .isEqualTo("name  " + word + " " + word + "\n      next");
    assertThat(Wrapped.text("n ", word + " " + word + " a" + Wrapped.STAYS + "b c"))
        .isEqualTo("n " + word + " " + word + " a b\n  c");
    assertThat(Wrapped.text("n ", word + " " + word + " aa" + Wrapped.STAYS + "bb"))
        .isEqualTo("n " + word + " " + word + "\n  aa bb");
  }

  @Test
  void aLongWordIsNotBroken() {
    String path = "/p".repeat(60);
    assertThat(Wrapped.text("", "at " + path)).isEqualTo("at\n" + path);
    assertThat(Wrapped.text("n ", "")).isEqualTo("n");
  }
}
