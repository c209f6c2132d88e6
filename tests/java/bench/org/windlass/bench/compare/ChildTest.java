// SPDX-License-Identifier: Apache-2.0
package org.windlass.bench.compare;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.nio.file.Path;
import java.time.Duration;
import java.util.List;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;

@Timeout(60)
class ChildTest {
  @TempDir private Path folder;

  private Child shell(double seconds, String script) {
    Duration deadline = Duration.ofMillis((long) (1e3 * seconds));
    return new Child(List.of("/bin/sh", "-c", script), deadline, folder.resolve("log"));
  }

  @Test
  void linesComeOneByOneThenTheReasonForTheEnd() throws Exception {
    try (Child child = shell(30, "echo one; echo; echo two; echo lost >&2; exit 3")) {
      assertThat(child.next()).isEqualTo("one");
      assertThat(child.next()).isEqualTo("two");
      for (int i = 0; i < 2; i++) {
        assertThatThrownBy(child::next)
            .isInstanceOf(Child.Stopped.class)
            .hasMessage("status 3: lost");
      }
    }
  }

  @Test
  void aChildThatHangsIsEndedWithItsChildren() throws Exception {
    long other;
    try (Child child = shell(0.5, "sleep 1000 & echo $!; wait")) {
      other = Long.parseLong(child.next());
      assertThat(ProcessHandle.of(other)).isPresent();
      assertThatThrownBy(child::next)
          .isInstanceOf(Child.Stopped.class)
          .hasMessageContaining("deadline");
    }
    for (int i = 0; i < 100 && ProcessHandle.of(other).isPresent(); i++) {
      Thread.sleep(50);
    }
    assertThat(ProcessHandle.of(other)).isEmpty();
  }
}
