// SPDX-License-Identifier: Apache-2.0
package org.windlass.checkpoint;

import java.io.IOException;
import java.nio.file.FileVisitResult;
import java.nio.file.Files;
import java.nio.file.LinkOption;
import java.nio.file.NoSuchFileException;
import java.nio.file.Path;
import java.nio.file.SimpleFileVisitor;
import java.nio.file.attribute.BasicFileAttributes;

/** A file or a folder with all that is in it, which others may be removing too. */
final class FileTree {
  private FileTree() {}

  static void removeQuietly(Path root) {
    try {
      remove(root);
    } catch (IOException left) {
      // The next writer in this folder tries again.
    }
  }

  /** Removes a file or a folder with all that is in it; links are removed, not followed. */
  static void remove(Path root) throws IOException {
    if (!Files.exists(root, LinkOption.NOFOLLOW_LINKS)) {
      return;
    }
    Files.walkFileTree(
        root,
        new SimpleFileVisitor<>() {
          @Override
          public FileVisitResult visitFile(Path file, BasicFileAttributes attributes)
              throws IOException {
            Files.deleteIfExists(file);
            return FileVisitResult.CONTINUE;
          }

          @Override
          public FileVisitResult visitFileFailed(Path file, IOException fault) throws IOException {
            if (fault instanceof NoSuchFileException) {
              return FileVisitResult.CONTINUE;
            }
            throw fault;
          }

          @Override
          public FileVisitResult postVisitDirectory(Path folder, IOException fault)
              throws IOException {
            Files.deleteIfExists(folder);
            return FileVisitResult.CONTINUE;
          }
        });
  }
}
