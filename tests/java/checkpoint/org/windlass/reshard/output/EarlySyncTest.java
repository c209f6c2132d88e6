// SPDX-License-Identifier: Apache-2.0
package org.windlass.reshard.output;

import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.nio.file.Files;
import java.nio.file.Path;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;
import org.windlass.checkpoint.CheckpointWriter;
import org.windlass.error.ResourceException;

@Timeout(60)
class EarlySyncTest {
  private static final long ROUND = 64L << 20;

  @TempDir Path folder;

  @Test
  void aFailureIsToldOnceAndAsItIs() throws Exception {
    Path around = Files.createDirectory(folder.resolve("around"));
    try (CheckpointWriter writer = CheckpointWriter.begin(around.resolve("out"), false)) {
      writer.text("layout.json", new byte[1]);
      Files.move(around, folder.resolve("elsewhere"));
      assertThatThrownBy(() -> writeOn(writer))
          .isInstanceOf(ResourceException.class)
          .hasMessageContaining("cannot be written: no such file or folder")
          .hasNoSuppressedExceptions();
    }
  }

  /** Writes for as long as nothing fails. */
  private static void writeOn(CheckpointWriter writer) throws InterruptedException {
    try (EarlySync sync = new EarlySync(writer)) {
      while (true) {
        sync.wrote(ROUND);
        Thread.sleep(1);
      }
    }
  }
}
