// SPDX-License-Identifier: Apache-2.0
package org.windlass.cli.run;

import static org.assertj.core.api.Assertions.assertThat;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;

/** The next run removes the folders that killed runs left, and nothing else. */
@Timeout(120)
class RunFolderTest {
  @TempDir Path temporary;

  @Test
  void theNextRunRemovesWhatAKilledOneLeft() throws Exception {
    Process killed = start("wait");
    awaitFolders();
    Process other = start("end");
    assertThat(other.waitFor(60, TimeUnit.SECONDS)).isTrue();
    assertThat(entries()).as("folder of a live run").hasSize(1);
    killed.destroyForcibly().waitFor();
    assertThat(entries()).hasSize(1);
    Path folder = entries()[0];
    ProcessBuilder rank = new ProcessBuilder("sleep", "60");
    rank.environment().put("WINDLASS_TOKEN_FILE", folder.resolve("token").toString());
    Process outliving = rank.start();
    assertThat(start("end").waitFor(60, TimeUnit.SECONDS)).isTrue();
    assertThat(entries()).as("of a rank that outlives its run").containsExactly(folder);
    outliving.destroyForcibly().waitFor();
    Path foreign = Files.createDirectory(temporary.resolve("windlass-run-7"));
    Path withForeignFile = Files.createDirectory(temporary.resolve("windlass-run-8"));
    Files.createFile(withForeignFile.resolve("lock"));
    Files.createFile(withForeignFile.resolve("letter"));
    Path file = Files.createFile(temporary.resolve("windlass-run-9"));
    assertThat(start("end").waitFor(60, TimeUnit.SECONDS)).isTrue();
    assertThat(entries()).containsExactlyInAnyOrder(foreign, withForeignFile, file);
    assertThat(withForeignFile.resolve("letter")).exists();
  }

  private Process start(String what) throws IOException {
    return new ProcessBuilder(
            Path.of(System.getProperty("java.home"), "bin", "java").toString(),
            "-Djava.io.tmpdir=" + temporary,
            "-XX:-UsePerfData",
            "-cp",
            System.getProperty("java.class.path"),
            Run.class.getName(),
            what)
        .inheritIO()
        .start();
  }

  private void awaitFolders() throws Exception {
    while (!Files.exists(temporary.resolve("ready"))) {
      Thread.sleep(1);
    }
    Files.delete(temporary.resolve("ready"));
  }

  private Path[] entries() throws IOException {
    try (var entries = Files.list(temporary)) {
      return entries.toArray(Path[]::new);
    }
  }

  /** A run with a rank that failed and a token. */
  static final class Run {
    private Run() {}

    public static void main(String[] args) throws Exception {
      try (RunFolder folder = new RunFolder()) {
        Files.writeString(folder.resolve("1"), "failed");
        Path path = Files.writeString(folder.newFile("token"), "abc");
        if (args[0].equals("wait")) {
          Files.createFile(Path.of(System.getProperty("java.io.tmpdir"), "ready"));
          Thread.sleep(TimeUnit.MINUTES.toMillis(1));
        }
        Files.readString(path);
      }
    }
  }
}
