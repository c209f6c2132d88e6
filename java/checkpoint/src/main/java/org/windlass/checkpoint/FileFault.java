// SPDX-License-Identifier: Apache-2.0
package org.windlass.checkpoint;

import java.io.IOException;
import java.nio.channels.ClosedByInterruptException;
import java.nio.channels.ClosedChannelException;
import java.nio.file.AccessDeniedException;
import java.nio.file.FileSystemException;
import java.nio.file.Files;
import java.nio.file.NoSuchFileException;
import java.nio.file.NotDirectoryException;
import java.nio.file.Path;
import java.util.Objects;
import java.util.Optional;
import org.windlass.error.AbortedException;
import org.windlass.error.ClosedException;
import org.windlass.error.InvalidArgumentException;
import org.windlass.error.ResourceException;
import org.windlass.error.WindlassException;

/** Converts an IOException of a file to the Windlass exception that reports it. */
public final class FileFault {
  private static final String UNDER_FILE = "a part of this path is a file";
  private static final String FOLDER = "is a folder, not a file";

  private FileFault() {}

  /**
   * Returns the exception for an I/O error while reading {@code path}: InvalidArgument if the file
   * is missing or is a folder, otherwise Resource.
   */
  public static WindlassException reading(Path path, IOException fault) {
    requireNonNull(path, fault);
    boolean isLinkToNothing =
        !(fault instanceof AccessDeniedException) && link(path).isPresent() && !Files.exists(path);
    String wrong =
        fault instanceof NoSuchFileException || isLinkToNothing
            ? link(path).orElse("no such file or folder")
            : fault instanceof NotDirectoryException
                ? "not a folder"
                : isUnderFile(path)
                    ? UNDER_FILE
                    : Files.isDirectory(path) && !(fault instanceof FileSystemException)
                        ? FOLDER
                        : "";
    return fault instanceof ClosedChannelException
        ? ended(path, fault)
        : wrong.isEmpty()
            ? new ResourceException(path + ": cannot be read: " + reason(fault), fault)
            : new InvalidArgumentException(path + ": " + wrong, fault);
  }

  /**
   * Returns the exception for an I/O error while writing {@code path}: InvalidArgument if it is a
   * folder or its parent is missing, otherwise Resource.
   */
  public static WindlassException writing(Path path, IOException fault) {
    requireNonNull(path, fault);
    String wrong =
        fault instanceof NoSuchFileException
            ? "the folder " + path.toAbsolutePath().getParent() + " does not exist"
            : isUnderFile(path) ? UNDER_FILE : Files.isDirectory(path) ? FOLDER : "";
    return fault instanceof ClosedChannelException || wrong.isEmpty()
        ? writingFolder(path, fault)
        : new InvalidArgumentException(path + ": " + wrong, fault);
  }

  /**
   * Returns the exception for an I/O error while changing the entries of a folder or syncing it.
   */
  public static WindlassException writingFolder(Path folder, IOException fault) {
    Objects.requireNonNull(folder, "folder");
    Objects.requireNonNull(fault, "fault");
    return fault instanceof ClosedChannelException
        ? ended(folder, fault)
        : new ResourceException(folder + ": cannot be written: " + reason(fault), fault);
  }

  /**
   * Returns a note for messages if {@code path} is a symbolic link: its target, and whether the
   * target exists. Otherwise returns empty.
   */
  public static Optional<String> link(Path path) {
    Objects.requireNonNull(path, "path");
    try {
      Path target = Files.readSymbolicLink(path);
      boolean there = Files.exists(path);
      return Optional.of(
          "is a symbolic link to " + target + (there ? "" : ", and nothing is there"));
    } catch (IOException | UnsupportedOperationException noLink) {
      return Optional.empty();
    }
  }

  /** Returns the exception for a file that was closed during the call, or by an interrupt. */
  private static WindlassException ended(Path path, IOException fault) {
    return fault instanceof ClosedByInterruptException
        ? new AbortedException(
            path + ": thread \"" + Thread.currentThread().getName() + "\" was interrupted", fault)
        : new ClosedException(path + ": was closed", fault);
  }

  private static void requireNonNull(Path path, IOException fault) {
    Objects.requireNonNull(path, "path");
    Objects.requireNonNull(fault, "fault");
  }

  private static boolean isUnderFile(Path path) {
    Path above = path.toAbsolutePath().getParent();
    while (above != null && !Files.exists(above)) {
      above = above.getParent();
    }
    return above != null && !Files.isDirectory(above);
  }

  private static String reason(IOException fault) {
    if (fault instanceof AccessDeniedException) {
      return "permission denied";
    }
    if (fault instanceof NoSuchFileException) {
      return "no such file or folder";
    }
    if (fault instanceof FileSystemException system && system.getReason() != null) {
      return system.getReason();
    }
    return fault.getMessage() == null ? fault.getClass().getSimpleName() : fault.getMessage();
  }
}
