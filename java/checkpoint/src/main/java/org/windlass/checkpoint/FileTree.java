// SPDX-License-Identifier: Apache-2.0
package org.windlass.checkpoint;

import java.io.IOException;
import java.nio.file.DirectoryIteratorException;
import java.nio.file.DirectoryStream;
import java.nio.file.Files;
import java.nio.file.InvalidPathException;
import java.nio.file.LinkOption;
import java.nio.file.NoSuchFileException;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;

/** Removes a file or a folder with its content, even while other processes do the same. */
final class FileTree {
  private FileTree() {}

  static void removeQuietly(Path root) {
    try {
      remove(root);
    } catch (IOException | InvalidPathException left) {
      // The next writer in this folder tries again.
    }
  }

  /** Removes a file or a folder. Links are not followed. Holds at most one file descriptor. */
  static void remove(Path root) throws IOException {
    if (Files.isDirectory(root, LinkOption.NOFOLLOW_LINKS)) {
      for (Path entry : entries(root)) {
        remove(entry);
      }
    }
    Files.deleteIfExists(root);
  }

  /** Returns the entries of a folder, or none if another process has removed it. */
  private static List<Path> entries(Path folder) throws IOException {
    List<Path> entries = new ArrayList<>();
    // The paths of a directory stream keep the bytes of names for which the locale has no
    // characters.
    try (DirectoryStream<Path> listed = Files.newDirectoryStream(folder)) {
      listed.forEach(entries::add);
    } catch (NoSuchFileException gone) {
      entries.clear();
    } catch (DirectoryIteratorException fault) {
      throw fault.getCause();
    }
    return entries;
  }
}
