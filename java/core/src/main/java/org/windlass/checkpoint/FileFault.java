// SPDX-License-Identifier: Apache-2.0
package org.windlass.checkpoint;

import java.io.IOException;
import java.nio.file.AccessDeniedException;
import java.nio.file.FileSystemException;
import java.nio.file.NoSuchFileException;
import java.nio.file.NotDirectoryException;
import java.nio.file.Path;
import org.windlass.InvalidArgumentException;
import org.windlass.ResourceException;
import org.windlass.WindlassException;

/** Which of our exceptions an IOException is. */
final class FileFault {
  private FileFault() {}

  /**
   * A fault while reading {@code path}: a missing file is the caller's mistake, the rest is the
   * machine's.
   */
  static WindlassException reading(Path path, IOException fault) {
    if (fault instanceof NoSuchFileException) {
      return new InvalidArgumentException(path + ": no such file or folder", fault);
    }
    if (fault instanceof NotDirectoryException) {
      return new InvalidArgumentException(path + ": not a folder", fault);
    }
    return new ResourceException(path + ": cannot be read: " + reason(fault), fault);
  }

  /** A fault while writing {@code path}. */
  static WindlassException writing(Path path, IOException fault) {
    return new ResourceException(path + ": cannot be written: " + reason(fault), fault);
  }

  private static String reason(IOException fault) {
    if (fault instanceof AccessDeniedException) {
      return "permission denied";
    }
    if (fault instanceof FileSystemException system && system.getReason() != null) {
      return system.getReason();
    }
    return fault.getMessage() == null ? fault.getClass().getSimpleName() : fault.getMessage();
  }
}
