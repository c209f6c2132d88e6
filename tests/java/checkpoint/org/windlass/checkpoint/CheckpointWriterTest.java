// SPDX-License-Identifier: Apache-2.0
package org.windlass.checkpoint;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.file.FileSystem;
import java.nio.file.FileSystems;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.attribute.FileTime;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.stream.Stream;
import org.assertj.core.api.ThrowableAssert.ThrowingCallable;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;
import org.windlass.DType;
import org.windlass.error.ClosedException;
import org.windlass.error.InvalidArgumentException;
import org.windlass.error.ResourceException;
import org.windlass.testing.SafetensorsBytes;

class CheckpointWriterTest {
  private static final List<SafetensorsHeader.Item> ONE_BYTE =
      List.of(new SafetensorsHeader.Item("x", DType.U8, List.of(1L)));

  @TempDir Path folder;

  private List<String> names() throws IOException {
    try (Stream<Path> entries = Files.list(folder)) {
      return entries.map(path -> path.getFileName().toString()).sorted().toList();
    }
  }

  private static void fill(CheckpointWriter writer, int value) {
    SafetensorsWriter file = writer.file("rank-00000.safetensors", ONE_BYTE, Map.of());
    file.write("x", 0, ByteBuffer.wrap(new byte[] {(byte) value}));
    writer.text("layout.json", new byte[] {'{', '}'});
    writer.sync();
  }

  @Test
  void whatIsNoFileIsNotReplaced() throws Exception {
    Path pipe = folder.resolve("pipe");
    assertThat(new ProcessBuilder("mkfifo", pipe.toString()).start().waitFor()).isZero();
    assertThatThrownBy(() -> CheckpointWriter.begin(pipe, true))
        .isInstanceOf(InvalidArgumentException.class)
        .hasMessageContaining("pipe: is a device, a pipe or a socket, which Windlass did not write");
    assertThat(names()).containsExactly("pipe");
  }

  @Test
  void nothingStandsUnderTheNameUntilTheCommit() throws IOException {
    Path out = folder.resolve("out");
    try (CheckpointWriter writer = CheckpointWriter.begin(out, false)) {
      fill(writer, 7);
      assertThat(out).doesNotExist();
      writer.commit();
      assertThatThrownBy(writer::commit).isInstanceOf(ClosedException.class);
    }
    assertThat(names()).containsExactly("out");
    try (SafetensorsFile file = SafetensorsFile.open(out.resolve("rank-00000.safetensors"))) {
      assertThat(file.tensor("x").getLong(0)).isEqualTo(7);
      assertThat(file.header().dataStart() % 8).isZero();
    }
  }

  @Test
  void anotherProcessWritesAFileThatIsMade() throws IOException {
    Path path = folder.resolve("x.safetensors");
    List<SafetensorsHeader.Item> two =
        List.of(
            new SafetensorsHeader.Item("x", DType.U8, List.of(1L)),
            new SafetensorsHeader.Item("y", DType.U8, List.of(1L)));
    try (SafetensorsWriter made = SafetensorsWriter.create(path, two, Map.of("a", "b"));
        SafetensorsWriter opened = SafetensorsWriter.open(path, two, Map.of("a", "b"))) {
      made.write("x", 0, ByteBuffer.wrap(new byte[] {7}));
      opened.write("y", 0, ByteBuffer.wrap(new byte[] {8}));
      opened.sync();
    }
    try (SafetensorsFile file = SafetensorsFile.open(path)) {
      assertThat(file.tensor("x").getLong(0)).isEqualTo(7);
      assertThat(file.tensor("y").getLong(0)).isEqualTo(8);
    }
    String other = "x.safetensors: has another header than that of these tensors";
    refused(() -> SafetensorsWriter.open(path, two, Map.of()), other);
    refused(() -> SafetensorsWriter.open(path, ONE_BYTE, Map.of("a", "b")), other);
    Path none = folder.resolve("none.safetensors");
    refused(() -> SafetensorsWriter.open(none, two, Map.of()), "no such file");
    assertThat(none).doesNotExist();
  }

  @Test
  void aCommitIsWholeWhateverInterruptsIt() throws IOException {
    Path out = folder.resolve("out");
    try (CheckpointWriter writer = CheckpointWriter.begin(out, false)) {
      fill(writer, 7);
      Thread.currentThread().interrupt();
      writer.commit();
    }
    assertThat(Thread.interrupted()).isTrue();
    assertThat(names()).containsExactly("out");
  }

  @ParameterizedTest
  @ValueSource(
      strings = {
        "", ".", "..", "../escaped", "../../escaped", "/escaped", "sub/x", "sub\\x", "x\0", "\ud800"
      })
  void namesThatLeaveTheFolderAreRefused(String name) throws IOException {
    Path out = folder.resolve("out");
    try (CheckpointWriter writer = CheckpointWriter.begin(out, false)) {
      refused(() -> writer.text(name, new byte[1]), "not the name of a file in the folder");
      refused(() -> writer.file(name, ONE_BYTE, Map.of()), "not the name of a file in the folder");
      fill(writer, 7);
      writer.commit();
    }
    assertThat(names()).containsExactly("out");
    assertThat(folder.resolveSibling("escaped")).doesNotExist();
  }

  @Test
  void whatReadersRefuseIsNotWritten() throws IOException {
    LayoutFile.Entry entry = new LayoutFile.Entry(List.of(1L), Optional.empty(), Optional.empty());
    for (String file : List.of("../a.safetensors", "a\0.safetensors", "a.bin")) {
      refused(() -> new SafetensorsIndex(Map.of("x", file)).encode(1), "weight_map");
    }
    refused(
        () -> new LayoutFile.Entry(List.of(-1L), Optional.empty(), Optional.empty()), "shape[0]");
    try (CheckpointWriter writer = CheckpointWriter.begin(folder.resolve("out"), false)) {
      refused(() -> writer.file("x.bin", ONE_BYTE, Map.of()), "does not end in .safetensors");
      for (String name : List.of("", "__metadata__", "half \udc00")) {
        List<SafetensorsHeader.Item> items =
            List.of(new SafetensorsHeader.Item(name, DType.U8, List.of(1L)));
        refused(() -> writer.file("a.safetensors", items, Map.of()), "tensor");
        refused(() -> writer.single(items, Map.of()), "tensor");
        refused(() -> new SafetensorsIndex(Map.of(name, "a.safetensors")).encode(1), "tensor");
        refused(() -> new LayoutFile(Map.of(name, entry)).encode(), "tensor");
      }
      for (Map<String, String> metadata : List.of(Map.of("\ud800", ""), Map.of("", "\ud800"))) {
        refused(() -> writer.file("a.safetensors", ONE_BYTE, metadata), "an unpaired surrogate");
      }
    }
    assertThat(names()).isEmpty();
  }

  @Test
  void aNameIsTakenOnce() {
    try (CheckpointWriter writer = CheckpointWriter.begin(folder.resolve("out"), false)) {
      refused(writer::commit, "nothing was written");
      fill(writer, 7);
      refused(() -> writer.text("layout.json", new byte[0]), "\"layout.json\" already");
      refused(
          () -> writer.file("rank-00000.safetensors", ONE_BYTE, Map.of()),
          "\"rank-00000.safetensors\" already");
      refused(() -> writer.single(ONE_BYTE, Map.of()), "holds a file already");
    }
    try (CheckpointWriter writer = CheckpointWriter.begin(folder.resolve("x"), false)) {
      writer.single(ONE_BYTE, Map.of());
      refused(() -> writer.single(ONE_BYTE, Map.of()), "holds a file already");
      refused(() -> writer.text("layout.json", new byte[0]), "is a single file already");
    }
  }

  @Test
  void nothingGoesOnAfterClose() {
    Path out = folder.resolve("out");
    CheckpointWriter writer = CheckpointWriter.begin(out, false);
    SafetensorsWriter file = writer.file("a.safetensors", ONE_BYTE, Map.of());
    writer.sync();
    writer.commit();
    writer.close();
    SafetensorsFile read = SafetensorsFile.open(out.resolve("a.safetensors"));
    read.close();
    read.close();
    List<ThrowingCallable> calls =
        List.of(
            () -> writer.file("b.safetensors", ONE_BYTE, Map.of()),
            () -> writer.single(ONE_BYTE, Map.of()),
            () -> writer.text("b", new byte[1]),
            writer::sync,
            writer::commit,
            () -> file.write("x", 0, ByteBuffer.allocate(1)),
            () -> file.write("x", 0, ByteBuffer.allocate(0)),
            file::sync,
            () -> read.tensor("x"),
            () -> read.bytes("x"),
            () -> read.read("x", 0, ByteBuffer.allocate(1)),
            read::checkLength);
    for (ThrowingCallable call : calls) {
      assertThatThrownBy(call).isInstanceOf(ClosedException.class);
    }
    assertThat(read.entry("x").bytes()).isEqualTo(1);
  }

  private static void refused(ThrowingCallable call, String reason) {
    assertThatThrownBy(call)
        .isInstanceOf(InvalidArgumentException.class)
        .hasMessageContaining(reason);
  }

  @Test
  void nothingIsLeftWithoutACommit() throws IOException {
    try (CheckpointWriter writer = CheckpointWriter.begin(folder.resolve("out"), false)) {
      fill(writer, 7);
      assertThat(names()).hasSize(1);
    }
    assertThat(names()).isEmpty();
  }

  @Test
  void aNewFileIsZeroWhereNothingIsWritten() throws IOException {
    Path out = folder.resolve("x.safetensors");
    try (CheckpointWriter writer = CheckpointWriter.begin(out, false)) {
      SafetensorsWriter file =
          writer.single(List.of(new SafetensorsHeader.Item("x", DType.U8, List.of(1000L))), Map.of());
      file.write("x", 997, ByteBuffer.wrap(new byte[] {1, 2, 3}));
      assertThatThrownBy(() -> file.write("x", 998, ByteBuffer.allocate(3)))
          .isInstanceOf(InvalidArgumentException.class)
          .hasMessageContaining("bytes 998 to 1001 of 1000");
      writer.sync();
      writer.commit();
      assertThatThrownBy(() -> file.write("x", 0, ByteBuffer.allocate(1)))
          .isInstanceOf(ClosedException.class);
    }
    try (SafetensorsFile file = SafetensorsFile.open(out)) {
      for (int i = 0; i < 1000; i++) {
        assertThat(file.tensor("x").getLong(i)).isEqualTo(Math.max(0, i - 996));
      }
    }
  }

  @Test
  void anExistingNameIsRefusedAtTheStartAndAtTheEnd() throws IOException {
    Path out = folder.resolve("out");
    try (CheckpointWriter writer = CheckpointWriter.begin(out, false)) {
      fill(writer, 7);
      Files.writeString(out, "other");
      assertThatThrownBy(writer::commit)
          .isInstanceOf(InvalidArgumentException.class)
          .hasMessageContaining("exists already");
    }
    assertThat(out).hasContent("other");
    assertThatThrownBy(() -> CheckpointWriter.begin(out, false))
        .isInstanceOf(InvalidArgumentException.class)
        .hasMessageContaining("exists already");
    assertThat(names()).containsExactly("out");
  }

  @Test
  void anExistingFolderOrFileIsExchanged() throws IOException {
    Path out = folder.resolve("out");
    Files.createDirectory(out);
    for (int value : new int[] {7, 8}) {
      try (CheckpointWriter writer = CheckpointWriter.begin(out, true)) {
        fill(writer, value);
        writer.commit();
      }
      assertThat(names()).containsExactly("out");
      try (Stream<Path> inside = Files.list(out)) {
        assertThat(inside).hasSize(2);
      }
    }
    Path single = folder.resolve("x.safetensors");
    for (int value : new int[] {7, 8}) {
      try (CheckpointWriter writer = CheckpointWriter.begin(single, true)) {
        writer.single(ONE_BYTE, Map.of("value", "" + value));
        writer.sync();
        writer.commit();
      }
      try (SafetensorsFile file = SafetensorsFile.open(single)) {
        assertThat(file.header().metadata()).containsExactly(Map.entry("value", "" + value));
      }
    }
    assertThat(names()).containsExactly("out", "x.safetensors");
  }

  private void notReplaced(Path out, String reason) throws IOException {
    List<String> before = names();
    assertThatThrownBy(() -> CheckpointWriter.begin(out, true).close())
        .isInstanceOf(InvalidArgumentException.class)
        .hasMessageContaining(out.toString())
        .hasMessageContaining(reason);
    assertThat(names()).isEqualTo(before);
  }

  private Path written(String name) {
    Path out = folder.resolve(name);
    try (CheckpointWriter writer = CheckpointWriter.begin(out, false)) {
      fill(writer, 7);
      writer.commit();
    }
    return out;
  }

  @Test
  void whatIsNotAWritersOwnIsNotReplaced() throws Exception {
    Path foreign = SafetensorsBytes.bytes(folder.resolve("x.safetensors"), "a", (byte) 1);
    notReplaced(foreign, "is a file that Windlass did not write");
    Path full = Files.createDirectory(folder.resolve("full"));
    SafetensorsBytes.bytes(full.resolve("rank-00000.safetensors"), "a", (byte) 1);
    notReplaced(full, "holds rank-00000.safetensors");

    Path joined = written("joined");
    Files.writeString(joined.resolve("config.json"), "{}");
    notReplaced(joined, "holds config.json");
    Path deep = written("deep");
    Files.createDirectory(deep.resolve("logs"));
    notReplaced(deep, "holds logs");

    Path changed = written("changed");
    Files.writeString(changed.resolve("layout.json"), "{ }");
    notReplaced(changed, "holds layout.json");
    Path copied = written("copied");
    byte[] bytes = Files.readAllBytes(copied.resolve("layout.json"));
    Files.delete(copied.resolve("layout.json"));
    Files.write(copied.resolve("layout.json"), bytes);
    notReplaced(copied, "holds layout.json");

    Path same = written("same");
    Path layout = same.resolve("layout.json");
    FileTime time = FileTime.from(Files.getLastModifiedTime(layout).toInstant().plusNanos(1_000_000));
    Files.write(layout, new byte[] {'[', ']'});
    Files.setLastModifiedTime(layout, time);
    notReplaced(same, "holds layout.json");
    Path archive = folder.resolve("archive");
    String[] copy = {"cp", "-a", written("archived").toString(), archive.toString()};
    assertThat(new ProcessBuilder(copy).start().waitFor()).isZero();
    notReplaced(archive, "holds layout.json");

    Path collection = Files.createDirectory(folder.resolve("collection"));
    for (String name : List.of("a", "b")) {
      Files.move(
          written(name).resolve("rank-00000.safetensors"), collection.resolve(name + ".safetensors"));
    }
    notReplaced(collection, "is a folder that Windlass did not write");
    Path renamed = written("renamed");
    Files.move(renamed.resolve("layout.json"), renamed.resolve("mine.json"));
    notReplaced(renamed, "is a folder that");
    notReplaced(Files.createFile(folder.resolve("empty")), "is a file that Windlass did not write");

    Path link = Files.createSymbolicLink(folder.resolve("link"), written("target"));
    notReplaced(link, "is a symbolic link to " + folder.resolve("target"));
    Path inside = written("inside");
    Files.delete(inside.resolve("layout.json"));
    Files.createSymbolicLink(inside.resolve("layout.json"), folder.resolve("target/layout.json"));
    notReplaced(inside, "holds layout.json");
  }

  @Test
  void whatBecomesAnothersBeforeTheCommitStays() throws IOException {
    Path out = written("out");
    try (CheckpointWriter writer = CheckpointWriter.begin(out, true)) {
      fill(writer, 8);
      Files.writeString(out.resolve("notes"), "mine");
      assertThatThrownBy(writer::commit)
          .isInstanceOf(InvalidArgumentException.class)
          .hasMessageContaining("holds notes");
    }
    assertThat(out.resolve("notes")).hasContent("mine");
    assertThat(names()).containsExactly("out");
  }

  @Test
  void aSecondWriterOfANameIsRefusedWhileTheFirstLives() throws IOException {
    String longName = "a".repeat(80);
    for (String name : List.of("out", longName)) {
      Path out = folder.resolve(name);
      try (CheckpointWriter first = CheckpointWriter.begin(out, false)) {
        for (boolean replace : new boolean[] {false, true}) {
          assertThatThrownBy(() -> CheckpointWriter.begin(out, replace))
              .isInstanceOf(InvalidArgumentException.class)
              .hasMessageContaining(
                  out + ": process " + ProcessHandle.current().pid() + " is writing it");
        }
        CheckpointWriter.begin(folder.resolve(name + "b"), false).close();
        fill(first, 1);
        first.commit();
      }
      CheckpointWriter.begin(out, true).close();
    }
    assertThat(names()).containsExactly(longName, "out");
  }

  @Test
  void whatADeadProcessLeftIsRemovedAndWhatALiveOneHasIsNot() throws IOException {
    Path left = folder.resolve(".old.windlass-1-0123456789abcdef");
    Files.createDirectories(left.resolve("content"));
    Files.writeString(left.resolve("content/rank-00000.safetensors"), "half");
    Path similar = Files.createDirectory(folder.resolve(".old.windlass-notes"));
    try (CheckpointWriter alive = CheckpointWriter.begin(folder.resolve("a"), false)) {
      fill(alive, 1);
      assertThat(left).doesNotExist();
      assertThat(similar).exists();
      try (CheckpointWriter other = CheckpointWriter.begin(folder.resolve("b"), false)) {
        fill(other, 2);
        other.commit();
      }
      alive.commit();
    }
    assertThat(names()).containsExactly(".old.windlass-notes", "a", "b");
  }

  @Test
  void aDiskThatIsTooSmallIsAResourceErrorAndLeavesNothing() throws IOException {
    try (CheckpointWriter writer = CheckpointWriter.begin(folder.resolve("out"), false)) {
      assertThatThrownBy(
              () ->
                  writer.file(
                      "rank-00000.safetensors",
                      List.of(new SafetensorsHeader.Item("x", DType.U8, List.of(1L << 52))),
                      Map.of()))
          .isInstanceOf(ResourceException.class)
          .hasMessageContaining("cannot reserve");
    }
    assertThat(names()).isEmpty();
  }

  @Test
  void aFolderThatIsNotThereIsNamed() {
    assertThatThrownBy(() -> CheckpointWriter.begin(folder.resolve("no/out"), false))
        .isInstanceOf(InvalidArgumentException.class)
        .hasMessageContaining("the folder " + folder.resolve("no") + " does not exist");
  }

  @Test
  void whatCannotBeWrittenIsNamedBeforeAnythingIs() throws IOException {
    assertThatThrownBy(() -> CheckpointWriter.begin(folder.resolve("x".repeat(256)), false))
        .isInstanceOf(ResourceException.class)
        .hasMessageContaining("File name too long");
    assertThatThrownBy(() -> CheckpointWriter.begin(Path.of("/proc/out"), false))
        .isInstanceOf(ResourceException.class)
        .hasMessage("/proc: cannot be written: no such file or folder");
    assertThat(names()).isEmpty();
  }

  @Test
  void aPathInAnArchiveIsRefused() throws IOException {
    Path archive = folder.resolve("a.zip");
    try (FileSystem files = FileSystems.newFileSystem(archive, Map.of("create", "true"))) {
      assertThatThrownBy(() -> CheckpointWriter.begin(files.getPath("out"), false))
          .isInstanceOf(InvalidArgumentException.class)
          .hasMessageContaining("out: is a path of jar; checkpoints can only be written to");
    }
  }

  private static void commit(Path out, boolean replace) throws IOException {
    try (CheckpointWriter writer = CheckpointWriter.begin(out, replace)) {
      fill(writer, 7);
      writer.commit();
    }
  }

  @Test
  void aPathGoesWhereTheSystemGoes() throws IOException {
    Path inner = Files.createDirectories(folder.resolve("outer/inner"));
    Files.createSymbolicLink(folder.resolve("link"), inner);
    commit(folder.resolve("link/../out"), false);
    assertThat(folder.resolve("outer/out")).isDirectory();
    assertThat(folder.resolve("out")).doesNotExist();
    Files.createDirectory(folder.resolve("here"));
    commit(folder.resolve("here/."), true);
    assertThat(folder.resolve("here")).isNotEmptyDirectory();
    Path file = Files.createFile(folder.resolve("file"));
    assertThatThrownBy(() -> CheckpointWriter.begin(file.resolve("out"), false))
        .isInstanceOf(InvalidArgumentException.class)
        .hasMessageContaining("a part of this path is a file");
  }
}
