// SPDX-License-Identifier: Apache-2.0
package org.windlass.checkpoint;

import static org.assertj.core.api.Assertions.assertThat;

import java.io.IOException;
import java.nio.file.FileSystemException;
import java.nio.file.Files;
import java.nio.file.NoSuchFileException;
import java.nio.file.Path;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.windlass.error.InvalidArgumentException;
import org.windlass.error.ResourceException;

/** What faults become: by what stands on the disk, in whatever language the system speaks. */
class FileFaultTest {
  @TempDir Path folder;

  private static FileSystemException fault(Path path) {
    return new FileSystemException(path.toString(), null, "Spricht Deutsch");
  }

  @Test
  void aPathBelowAFileIsTheCallersMistake() throws IOException {
    Path file = Files.createFile(folder.resolve("file"));
    for (Path below : new Path[] {file.resolve("a"), file.resolve("a/b")}) {
      String said = below + ": a part of this path is a file";
      assertThat(FileFault.reading(below, fault(below)))
          .isInstanceOf(InvalidArgumentException.class)
          .hasMessage(said);
      assertThat(FileFault.writing(below, fault(below)))
          .isInstanceOf(InvalidArgumentException.class)
          .hasMessage(said);
    }
  }

  @Test
  void aFolderInAFilesPlaceIsTheCallersMistakeAndAFolderThatCannotBeWrittenIsNot() {
    assertThat(FileFault.writing(folder, fault(folder)))
        .isInstanceOf(InvalidArgumentException.class)
        .hasMessage(folder + ": is a folder, not a file");
    assertThat(FileFault.writingFolder(folder, fault(folder)))
        .isInstanceOf(ResourceException.class)
        .hasMessage(folder + ": cannot be written: Spricht Deutsch");
  }

  @Test
  void anyOtherFaultIsTheMachines() throws IOException {
    Path file = Files.createFile(folder.resolve("file"));
    assertThat(FileFault.reading(file, fault(file)))
        .isInstanceOf(ResourceException.class)
        .hasMessage(file + ": cannot be read: Spricht Deutsch");
    assertThat(FileFault.writing(file, fault(file)))
        .isInstanceOf(ResourceException.class)
        .hasMessage(file + ": cannot be written: Spricht Deutsch");
  }

  @Test
  void aLinkToNothingIsSaidToBeOne() throws IOException {
    Path gone = folder.resolve("gone");
    Path link = Files.createSymbolicLink(folder.resolve("link"), gone);
    assertThat(FileFault.reading(link, new NoSuchFileException(link.toString())))
        .isInstanceOf(InvalidArgumentException.class)
        .hasMessage(link + ": is a symbolic link to " + gone + ", and nothing is there");
    assertThat(FileFault.reading(gone, new NoSuchFileException(gone.toString())))
        .hasMessage(gone + ": no such file or folder");
    Path loop = Files.createSymbolicLink(folder.resolve("loop"), Path.of("loop"));
    assertThat(FileFault.reading(loop, fault(loop)))
        .isInstanceOf(InvalidArgumentException.class)
        .hasMessage(loop + ": is a symbolic link to loop, and nothing is there");
  }
}
