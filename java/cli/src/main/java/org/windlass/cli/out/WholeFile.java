// SPDX-License-Identifier: Apache-2.0
package org.windlass.cli.out;

import java.io.BufferedWriter;
import java.io.IOException;
import java.io.OutputStream;
import java.io.OutputStreamWriter;
import java.io.Writer;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.LinkOption;
import java.nio.file.Path;
import java.nio.file.StandardCopyOption;
import java.nio.file.StandardOpenOption;
import org.windlass.checkpoint.FileFault;
import org.windlass.error.InvalidArgumentException;

/**
 * A text file that appears under its name completely or not at all. The text is written to a
 * temporary file in the same folder. At {@link #commit}, this file replaces the named file. A
 * device or a pipe is written directly.
 */
public final class WholeFile implements AutoCloseable {
  // A file name has at most 255 bytes, and a Java character at most three of them.
  private static final int NAME_LIMIT = 60;

  private final Path file;

  /** Path of the final file, after following links. */
  private final Path place;

  /** Path of the temporary file; the same as {@code place} if the latter is a device or a pipe. */
  private final Path work;

  private final OutputStream out;
  private final Writer writer;
  private boolean hasEnded;

  private WholeFile(Path file, Path place, Path work) throws IOException {
    this.file = file;
    this.place = place;
    this.work = work;
    if (isBeside()) {
      Files.deleteIfExists(work);
    }
    out =
        Files.newOutputStream(
            work,
            isBeside() ? StandardOpenOption.CREATE_NEW : StandardOpenOption.WRITE,
            StandardOpenOption.WRITE);
    writer = new BufferedWriter(new OutputStreamWriter(out, StandardCharsets.UTF_8));
  }

  private boolean isBeside() {
    return !work.equals(place);
  }

  /**
   * Starts a file.
   *
   * @param file path as messages name it; its folder exists
   * @throws InvalidArgumentException if it is a folder, or a link without a target
   */
  public static WholeFile create(Path file) {
    try {
      boolean isThere = Files.exists(file);
      if (!isThere && Files.exists(file, LinkOption.NOFOLLOW_LINKS)) {
        throw new InvalidArgumentException(file + ": " + FileFault.link(file).orElse("is gone"));
      }
      if (Files.isDirectory(file)) {
        throw new InvalidArgumentException(file + ": is a folder, not a file");
      }
      if (isThere && !Files.isRegularFile(file)) {
        return new WholeFile(file, file, file);
      }
      Path place = isThere ? file.toRealPath() : file.toAbsolutePath();
      String name = place.getFileName().toString();
      String shown = name.length() <= NAME_LIMIT ? name : name.substring(0, NAME_LIMIT);
      long pid = ProcessHandle.current().pid();
      return new WholeFile(file, place, place.resolveSibling("." + shown + "." + pid + ".tmp"));
    } catch (IOException fault) {
      throw FileFault.writing(file, fault);
    }
  }

  public synchronized void write(String text) {
    try {
      writer.write(text);
    } catch (IOException fault) {
      throw FileFault.writing(file, fault);
    }
  }

  /** Gives the file its final name, and replaces an existing file. */
  public synchronized void commit() {
    try {
      writer.close();
      if (isBeside()) {
        Files.move(
            work, place, StandardCopyOption.ATOMIC_MOVE, StandardCopyOption.REPLACE_EXISTING);
      }
      hasEnded = true;
    } catch (IOException fault) {
      throw FileFault.writing(file, fault);
    }
  }

  /** Removes the file unless it was committed. Idempotent; any thread may call it. */
  @Override
  public synchronized void close() {
    if (hasEnded) {
      return;
    }
    hasEnded = true;
    // Don't close the writer: it stays open if it cannot write its remaining text.
    try (out) {
      if (isBeside()) {
        Files.deleteIfExists(work);
      }
    } catch (IOException unwritten) {
      // The earlier exception says why there is no file.
    }
  }
}
