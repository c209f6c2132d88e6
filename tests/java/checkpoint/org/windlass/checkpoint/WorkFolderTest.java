// SPDX-License-Identifier: Apache-2.0
package org.windlass.checkpoint;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.io.IOException;
import java.io.InputStream;
import java.nio.ByteBuffer;
import java.nio.file.DirectoryNotEmptyException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.windlass.DType;
import org.windlass.error.InvalidArgumentException;
import org.windlass.error.ResourceException;

/** Work folders of several processes in one place. */
class WorkFolderTest {
  private static final long NANOS = TimeUnit.MILLISECONDS.toNanos(1500);

  @TempDir Path folder;

  /** Another process, which removes abandoned folders on two threads. */
  public static final class Sweeper {
    private Sweeper() {}

    public static void main(String[] arguments) throws Exception {
      Path folder = Path.of(arguments[0]);
      Thread other = new Thread(() -> sweep(folder));
      other.setDaemon(true);
      other.start();
      sweep(folder);
    }

    private static void sweep(Path folder) {
      while (Files.exists(folder.resolve("go"))) {
        WorkFolder.removeAbandoned(folder);
      }
    }
  }

  private List<String> names() throws IOException {
    try (Stream<Path> entries = Files.list(folder)) {
      return entries.map(path -> path.getFileName().toString()).sorted().toList();
    }
  }

  @Test
  void noFolderGoesWhileItsWriterHasIt() throws Exception {
    Path go = Files.createFile(folder.resolve("go"));
    Process sweeper =
        new ProcessBuilder(
                Path.of(System.getProperty("java.home"), "bin", "java").toString(), "-cp",
                System.getProperty("java.class.path"), Sweeper.class.getName(), folder.toString())
            .inheritIO()
            .start();
    int made = 0;
    int lost = 0;
    try {
      Path abandoned = Files.createDirectory(folder.resolve(".x.windlass-1-0123456789abcdef"));
      while (Files.exists(abandoned)) {
        assertThat(sweeper.isAlive()).isTrue();
        Thread.sleep(1);
      }
      long end = System.nanoTime() + NANOS;
      while (System.nanoTime() < end) {
        WorkFolder work = WorkFolder.create(folder, "out");
        Path file = work.path().resolve("file");
        try {
          Files.createFile(file);
          Thread.yield();
          lost += Files.exists(file) ? 0 : 1;
        } catch (IOException gone) {
          lost++;
        }
        work.remove();
        made++;
      }
    } finally {
      Files.delete(go);
      assertThat(sweeper.waitFor(20, TimeUnit.SECONDS)).isTrue();
    }
    assertThat(lost).as("of %d folders", made).isZero();
    WorkFolder.removeAbandoned(folder);
    assertThat(names()).isEmpty();
  }

  @Test
  void aFolderThatWasBeingRemovedIsRemoved() throws IOException {
    Path gone = folder.resolve(".x.windlass-1-0123456789abcdef.gone");
    Files.createFile(Files.createDirectories(gone.resolve("content")).resolve("file"));
    WorkFolder.create(folder, "x").remove();
    assertThat(gone).exists();
    WorkFolder.removeAbandoned(folder);
    assertThat(names()).isEmpty();
  }

  @Test
  void whatAnotherProgramRemovedIsNotCommitted() throws IOException {
    List<SafetensorsHeader.Item> items =
        List.of(new SafetensorsHeader.Item("x", DType.U8, List.of(1L)));
    for (String removed : List.of("content/a.safetensors", "content", "")) {
      try (CheckpointWriter writer = CheckpointWriter.begin(folder.resolve("out"), false)) {
        writer.file("a.safetensors", items, Map.of()).write("x", 0, ByteBuffer.allocate(1));
        Path work = writer.staged().getParent();
        WorkFolder.removeTree(work.resolve(removed));
        if (removed.isEmpty()) {
          assertThatThrownBy(() -> writer.text("b", new byte[1]))
              .isInstanceOf(ResourceException.class);
        } else {
          writer.text("b", new byte[1]);
        }
        assertThatThrownBy(writer::commit)
            .isInstanceOf(ResourceException.class)
            .hasMessageContaining("out: another program removed or changed a.safetensors in ")
            .hasMessageContaining(work.toString());
      }
      assertThat(names()).isEmpty();
    }
  }

  /** Another process: with an argument it opens all files that it may, and then removes a tree. */
  public static final class Remover {
    private Remover() {}

    public static void main(String[] arguments) throws Exception {
      Path folder = Path.of(arguments[0]);
      if (arguments.length == 1) {
        WorkFolder.removeAbandoned(folder);
        WorkFolder.create(folder, "out").remove();
        return;
      }
      WorkFolder.removeTree(Files.createDirectories(folder.resolve("warm/up")).getParent());
      List<InputStream> open = new ArrayList<>();
      try {
        while (true) {
          open.add(Files.newInputStream(Path.of("/dev/null")));
        }
      } catch (IOException full) {
        try {
          WorkFolder.removeTree(folder.resolve("tree"));
        } catch (DirectoryNotEmptyException silent) {
          System.exit(2);
        } catch (IOException told) {
          System.exit(told.getMessage().contains("open files") ? 3 : 4);
        }
      }
    }
  }

  /** The exit status of a shell's command, in which {@code $java} begins that of a remover. */
  private int shell(String command) throws Exception {
    ProcessBuilder builder =
        new ProcessBuilder(
                "sh", "-c", command, Path.of(System.getProperty("java.home"), "bin", "java").toString())
            .directory(folder.toFile())
            .inheritIO();
    builder.environment().put("CLASSPATH", System.getProperty("java.class.path"));
    builder.environment().put("MAIN", Remover.class.getName());
    Process process = builder.start();
    assertThat(process.waitFor(60, TimeUnit.SECONDS)).isTrue();
    return process.exitValue();
  }

  @Test
  void namesThatTheLocaleLacksAreRemoved() throws Exception {
    String name = "\"$(printf '\\303\\251')\"";
    String left = ".x.windlass-1-0123456789abcdef/content/";
    assertThat(shell("mkdir -p " + left + name + "; touch " + left + name + "/" + name)).isZero();
    assertThat(shell("LC_ALL=C exec \"$0\" $MAIN .")).isZero();
    assertThat(names()).isEmpty();
  }

  @Test
  void aLeftFolderWithANameThatTheLocaleLacksDoesNotStopAWriter() throws Exception {
    String left = ".\"$(printf '\\303\\251')\".windlass-1-0123456789abcdef";
    assertThat(shell("mkdir " + left + " " + left + ".gone; touch " + left + "/file")).isZero();
    assertThat(shell("LC_ALL=C exec \"$0\" $MAIN .")).isZero();
    assertThat(names()).filteredOn(name -> !name.startsWith(".")).isEmpty();
  }

  @Test
  void aFolderThatCannotBeListedIsAFault() throws Exception {
    Files.createFile(Files.createDirectories(folder.resolve("tree")).resolve("file"));
    assertThat(shell("ulimit -n 100; exec \"$0\" $MAIN . full")).isEqualTo(3);
    assertThat(folder.resolve("tree/file")).exists();
  }

  @Test
  void namesOfEqualHashCodesAreNotRivals() {
    for (String prefix : List.of("", "step-")) {
      WorkFolder one = WorkFolder.create(folder, prefix + "Aa");
      try {
        WorkFolder.create(folder, prefix + "BB").remove();
        assertThatThrownBy(() -> WorkFolder.create(folder, prefix + "Aa"))
            .isInstanceOf(InvalidArgumentException.class)
            .hasMessageContaining("is writing it");
      } finally {
        one.remove();
      }
    }
  }

  private void replace(Path out) {
    List<SafetensorsHeader.Item> items =
        List.of(new SafetensorsHeader.Item("x", DType.U8, List.of(1L)));
    try (CheckpointWriter writer = CheckpointWriter.begin(out, true)) {
      // Of two runs each has files that the other one lacks.
      long first = System.nanoTime() % 9;
      for (long i = first; i < first + 9; i++) {
        writer.file(i + ".safetensors", items, Map.of()).write("x", 0, ByteBuffer.allocate(1));
      }
      writer.commit();
    }
  }

  private static void requireReplaceable(Path out) {
    try {
      WriteMark.requireReplaceable(out, out);
    } catch (InvalidArgumentException replacedTwice) {
      assertThat(replacedTwice).hasMessageContaining("out: other runs keep replacing it");
    }
  }

  @Test
  void whatAnotherRunReplacesMeanwhileIsNotSaidToBeOthers() throws Exception {
    Path out = folder.resolve("out");
    replace(out);
    AtomicBoolean isOver = new AtomicBoolean();
    AtomicInteger replaced = new AtomicInteger();
    Thread other =
        new Thread(
            () -> {
              while (!isOver.get()) {
                replace(out);
                replaced.incrementAndGet();
              }
            });
    other.start();
    try {
      long end = System.nanoTime() + NANOS;
      while (System.nanoTime() < end) {
        requireReplaceable(out);
      }
    } finally {
      isOver.set(true);
      other.join();
    }
    assertThat(replaced.get()).isPositive();
  }
}
