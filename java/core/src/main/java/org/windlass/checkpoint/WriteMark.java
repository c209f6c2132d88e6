// SPDX-License-Identifier: Apache-2.0
package org.windlass.checkpoint;

import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.LinkOption;
import java.nio.file.Path;
import java.nio.file.attribute.BasicFileAttributes;
import java.nio.file.attribute.UserDefinedFileAttributeView;
import java.util.List;
import java.util.concurrent.TimeUnit;
import java.util.stream.Stream;
import org.windlass.InvalidArgumentException;
import org.windlass.internal.FileFault;

/**
 * The mark by which a file that a {@link CheckpointWriter} wrote is known again: the extended
 * attribute {@code user.windlass}, which says the file's length and the second in which it was last
 * written. A copy or a changed file does not bear it, and the file's content knows nothing of it.
 */
final class WriteMark {
  private static final String ATTRIBUTE = "windlass";

  private WriteMark() {}

  /** Marks a file that is complete. A file system without attributes keeps no mark. */
  static void set(Path file) {
    try {
      view(file).write(ATTRIBUTE, ByteBuffer.wrap(of(file)));
    } catch (IOException | UnsupportedOperationException unmarked) {
      // It is then refused where it would be replaced.
    }
  }

  /**
   * Refuses what may not be destroyed: all but an empty folder, an empty file, a marked file, and a
   * folder of marked files.
   *
   * @param shown how messages call it
   * @param path where it is
   * @throws InvalidArgumentException naming what was found
   */
  static void requireReplaceable(Path shown, Path path) {
    try {
      if (Files.isSymbolicLink(path)) {
        throw new InvalidArgumentException(
            shown + ": " + FileFault.link(path).orElse("was a symbolic link")
                + "; links are not followed here, so name what it leads to");
      }
      if (!Files.isDirectory(path, LinkOption.NOFOLLOW_LINKS)) {
        if (!Files.isRegularFile(path, LinkOption.NOFOLLOW_LINKS)) {
          throw refused(shown, "is a device, a pipe or a socket, which");
        }
        if (!isMarked(path) && Files.size(path) > 0) {
          throw refused(shown, "is a file that");
        }
        return;
      }
      List<Path> entries;
      try (Stream<Path> listed = Files.list(path)) {
        entries = listed.sorted().toList();
      }
      for (Path entry : entries) {
        if (!isMarked(entry)) {
          throw refused(shown, "holds " + entry.getFileName() + ", which");
        }
      }
    } catch (IOException fault) {
      throw FileFault.reading(shown, fault);
    }
  }

  private static InvalidArgumentException refused(Path shown, String what) {
    return new InvalidArgumentException(
        shown + ": " + what + " Windlass did not write, or which was changed since; only an empty"
            + " folder and what Windlass wrote are replaced");
  }

  private static boolean isMarked(Path file) throws IOException {
    if (!Files.isRegularFile(file, LinkOption.NOFOLLOW_LINKS)) {
      return false;
    }
    byte[] expected = of(file);
    ByteBuffer found = ByteBuffer.allocate(expected.length);
    try {
      UserDefinedFileAttributeView view = view(file);
      return view.size(ATTRIBUTE) == expected.length
          && view.read(ATTRIBUTE, found) == expected.length
          && found.flip().equals(ByteBuffer.wrap(expected));
    } catch (IOException | UnsupportedOperationException noMark) {
      return false;
    }
  }

  private static UserDefinedFileAttributeView view(Path file) {
    UserDefinedFileAttributeView view =
        Files.getFileAttributeView(
            file, UserDefinedFileAttributeView.class, LinkOption.NOFOLLOW_LINKS);
    if (view == null) {
      throw new UnsupportedOperationException();
    }
    return view;
  }

  private static byte[] of(Path file) throws IOException {
    BasicFileAttributes about =
        Files.readAttributes(file, BasicFileAttributes.class, LinkOption.NOFOLLOW_LINKS);
    long second = about.lastModifiedTime().to(TimeUnit.SECONDS);
    return (about.size() + " " + second).getBytes(StandardCharsets.US_ASCII);
  }
}
