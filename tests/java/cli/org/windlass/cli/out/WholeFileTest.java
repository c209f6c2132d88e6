// SPDX-License-Identifier: Apache-2.0
package org.windlass.cli.out;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.windlass.error.InvalidArgumentException;
import org.windlass.error.ResourceException;

class WholeFileTest {
  private static final String MUCH = "line\n".repeat(100_000);

  @TempDir Path folder;

  private List<String> names() throws IOException {
    try (Stream<Path> files = Files.list(folder)) {
      return files.map(path -> path.getFileName().toString()).sorted().toList();
    }
  }

  @Test
  void itAppearsWholeUnderItsName() throws IOException {
    Path path = folder.resolve("n".repeat(255));
    try (WholeFile file = WholeFile.create(path)) {
      file.write(MUCH);
      assertThat(path).doesNotExist();
      file.commit();
    }
    assertThat(path).hasContent(MUCH);
    assertThat(names()).hasSize(1);
  }

  @Test
  void withoutACommitWhatWasThereStaysAndNothingElse() throws IOException {
    Path path = Files.writeString(folder.resolve("a"), "before");
    try (WholeFile file = WholeFile.create(path)) {
      file.write(MUCH);
    }
    assertThat(path).hasContent("before");
    assertThat(names()).containsExactly("a");
  }

  @Test
  void aLinkStaysALink() throws IOException {
    Path path = Files.writeString(folder.resolve("a"), "before");
    Path link = Files.createSymbolicLink(folder.resolve("link"), Path.of("a"));
    try (WholeFile file = WholeFile.create(link)) {
      file.write("after");
      file.commit();
    }
    assertThat(path).hasContent("after");
    assertThat(names()).containsExactly("a", "link");
    assertThat(link).isSymbolicLink();
  }

  @Test
  void whatCannotBeWrittenIsNamedAsTheUserNamedIt() throws IOException {
    Path link = Files.createSymbolicLink(folder.resolve("link"), Path.of("gone"));
    assertThatThrownBy(() -> WholeFile.create(link))
        .isInstanceOf(InvalidArgumentException.class)
        .hasMessage(link + ": is a symbolic link to gone, and nothing is there");
    assertThatThrownBy(() -> WholeFile.create(folder))
        .isInstanceOf(InvalidArgumentException.class)
        .hasMessage(folder + ": is a folder, not a file");
    Path nowhere = folder.resolve("none/file");
    assertThatThrownBy(() -> WholeFile.create(nowhere))
        .isInstanceOf(InvalidArgumentException.class)
        .hasMessage(nowhere + ": the folder " + folder.resolve("none") + " does not exist");
    assertThatThrownBy(() -> WholeFile.create(Path.of("/proc/windlass")))
        .hasMessageStartingWith("/proc/windlass: ");
    assertThat(names()).containsExactly("link");
  }

  @Test
  void aDeviceStaysOneAndAFullOneIsTold() {
    Path full = Path.of("/dev/full");
    try (WholeFile file = WholeFile.create(full)) {
      assertThatThrownBy(
              () -> {
                file.write(MUCH);
                file.commit();
              })
          .isInstanceOf(ResourceException.class)
          .hasMessageStartingWith("/dev/full: cannot be written: ");
    }
    assertThat(Files.isRegularFile(full)).isFalse();
  }
}
