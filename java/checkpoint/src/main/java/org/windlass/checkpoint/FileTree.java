// SPDX-License-Identifier: Apache-2.0
package org.windlass.checkpoint;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.LinkOption;
import java.nio.file.Path;

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

  /**
   * Removes a file or a folder with all that is in it; links are removed, not followed. It has one
   * descriptor at a time, and that only while it lists a folder.
   */
  static void remove(Path root) throws IOException {
    if (Files.isDirectory(root, LinkOption.NOFOLLOW_LINKS)) {
      String[] names = root.toFile().list();
      for (String name : names == null ? new String[0] : names) {
        remove(root.resolve(name));
      }
    }
    Files.deleteIfExists(root);
  }
}
