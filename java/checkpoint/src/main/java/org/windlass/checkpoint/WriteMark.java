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
import java.util.Optional;
import java.util.concurrent.TimeUnit;
import java.util.stream.Stream;
import java.util.zip.CRC32C;
import org.windlass.error.InvalidArgumentException;
import org.windlass.error.WindlassException;

/**
 * Marks files and folders from a {@link CheckpointWriter} with the extended attribute {@code
 * user.windlass}, so that a later writer recognizes them.
 *
 * <p>The mark of a file holds its inode, its length and the time of its last write. The mark of a
 * folder holds its inode and the names in it. So a copy, a changed file, or a folder with added
 * files is not recognized. The content of the files is not part of the mark.
 */
final class WriteMark {
  /** Number of attempts to check a file that other processes keep replacing. */
  private static final int LOOKS = 2;

  private static final String ATTRIBUTE = "windlass";

  private WriteMark() {}

  /** Marks a complete file or folder. Does nothing on file systems without attributes. */
  static void set(Path path) {
    try {
      view(path).write(ATTRIBUTE, ByteBuffer.wrap(of(path)));
    } catch (IOException | UnsupportedOperationException unmarked) {
      // Without a mark, a later writer refuses to replace it.
    }
  }

  /**
   * Throws unless the path is an empty folder, a marked file, or a marked folder of marked files.
   *
   * @param shown the path as messages show it
   * @param path the path to check
   * @throws InvalidArgumentException with the reason why the file or folder may not be replaced
   */
  static void requireReplaceable(Path shown, Path path) {
    WindlassException last = null;
    for (int look = 0; look < LOOKS; look++) {
      Optional<Object> before = identity(path);
      try {
        lookAt(shown, path);
        return;
      } catch (WindlassException refused) {
        if (identity(path).equals(before)) {
          throw refused;
        }
        last = refused;
      }
    }
    throw new InvalidArgumentException(
        shown + ": other runs keep replacing it; write it again when they have ended", last);
  }

  /** Returns the inode and time of the file or folder at the path; empty if they can't be read. */
  private static Optional<Object> identity(Path path) {
    try {
      BasicFileAttributes now =
          Files.readAttributes(path, BasicFileAttributes.class, LinkOption.NOFOLLOW_LINKS);
      // The time is part of it, because a new file may get the inode of a removed one.
      return Optional.of(List.of(String.valueOf(now.fileKey()), now.lastModifiedTime()));
    } catch (IOException none) {
      return Optional.empty();
    }
  }

  private static void lookAt(Path shown, Path path) {
    try {
      if (Files.isSymbolicLink(path)) {
        throw new InvalidArgumentException(
            shown + ": " + FileFault.link(path).orElse("was a symbolic link")
                + "; links are not followed here, so name the target of the link");
      }
      if (!Files.isDirectory(path, LinkOption.NOFOLLOW_LINKS)) {
        if (!Files.isRegularFile(path, LinkOption.NOFOLLOW_LINKS)) {
          throw refused(shown, "is a device, a pipe or a socket, which");
        }
        if (!isMarked(path)) {
          throw refused(shown, "is a file that");
        }
        return;
      }
      List<Path> entries;
      try (Stream<Path> listed = Files.list(path)) {
        entries = listed.sorted().toList();
      }
      for (Path entry : entries) {
        if (!Files.isRegularFile(entry, LinkOption.NOFOLLOW_LINKS) || !isMarked(entry)) {
          throw refused(shown, "holds " + entry.getFileName() + ", which");
        }
      }
      if (!entries.isEmpty() && !isMarked(path)) {
        throw refused(shown, "is a folder that");
      }
    } catch (IOException fault) {
      throw FileFault.reading(shown, fault);
    }
  }

  private static InvalidArgumentException refused(Path shown, String what) {
    return new InvalidArgumentException(
        shown + ": " + what + " Windlass did not write, or which was changed since; only an empty"
            + " folder, or unchanged output of Windlass, is replaced");
  }

  private static boolean isMarked(Path file) throws IOException {
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

  private static byte[] of(Path path) throws IOException {
    Object inode = Files.getAttribute(path, "unix:ino", LinkOption.NOFOLLOW_LINKS);
    BasicFileAttributes about =
        Files.readAttributes(path, BasicFileAttributes.class, LinkOption.NOFOLLOW_LINKS);
    String text =
        about.isDirectory()
            ? inode + " " + checksumOfNames(path)
            : inode + " " + about.size() + " " + about.lastModifiedTime().to(TimeUnit.NANOSECONDS);
    return text.getBytes(StandardCharsets.US_ASCII);
  }

  private static long checksumOfNames(Path folder) throws IOException {
    CRC32C checksum = new CRC32C();
    try (Stream<Path> entries = Files.list(folder)) {
      entries
          .map(entry -> "/" + entry.getFileName())
          .sorted()
          .forEach(name -> checksum.update(name.getBytes(StandardCharsets.UTF_8)));
    }
    return checksum.getValue();
  }
}
