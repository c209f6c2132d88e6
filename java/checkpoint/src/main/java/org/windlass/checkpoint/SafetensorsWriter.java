// SPDX-License-Identifier: Apache-2.0
package org.windlass.checkpoint;

import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.channels.FileChannel;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import org.windlass.error.ClosedException;
import org.windlass.error.InvalidArgumentException;
import org.windlass.internal.json.JsonText;

/**
 * Writes a new safetensors file of its final size, whose tensors are zero at first. {@link #create}
 * reserves the disk blocks, so a full disk causes an exception there and never later. Several
 * processes may write the file at once: one creates it, and the others open it.
 */
public final class SafetensorsWriter implements AutoCloseable {
  private final Path path;
  private final SafetensorsHeader header;
  private final FileChannel channel;

  private SafetensorsWriter(Path path, SafetensorsHeader header, FileChannel channel) {
    this.path = path;
    this.header = header;
    this.channel = channel;
  }

  /**
   * Creates the file and writes its header.
   *
   * @param path the path of the new file, which must not exist
   * @param items the tensors, in the order of the file
   * @throws org.windlass.error.ResourceException if the disk is full; then no file is left
   */
  public static SafetensorsWriter create(
      Path path, List<SafetensorsHeader.Item> items, Map<String, String> metadata) {
    SafetensorsHeader header =
        SafetensorsHeader.of(
            Objects.requireNonNull(path, "path").toString(), items, metadata);
    NativeFiles.create(path, header.fileBytes());
    try {
      SafetensorsWriter file =
          new SafetensorsWriter(
              path, header, FileChannel.open(path, StandardOpenOption.WRITE));
      file.write(0, ByteBuffer.wrap(header.encode()));
      return file;
    } catch (IOException fault) {
      throw FileFault.writing(path, fault);
    }
  }

  /**
   * Opens a file that {@link #create} made with the same tensors and metadata, possibly in another
   * process. Keeps the file's content.
   *
   * @throws InvalidArgumentException if there is no such file, or its header differs
   */
  public static SafetensorsWriter open(
      Path path, List<SafetensorsHeader.Item> items, Map<String, String> metadata) {
    SafetensorsHeader header =
        SafetensorsHeader.of(
            Objects.requireNonNull(path, "path").toString(), items, metadata);
    try {
      FileChannel channel =
          FileChannel.open(path, StandardOpenOption.READ, StandardOpenOption.WRITE);
      SafetensorsWriter file = new SafetensorsWriter(path, header, channel);
      try {
        file.requireHeader();
        return file;
      } catch (IOException | RuntimeException refused) {
        file.close();
        throw refused;
      }
    } catch (IOException fault) {
      throw FileFault.reading(path, fault);
    }
  }

  private void requireHeader() throws IOException {
    byte[] expected = header.encode();
    ByteBuffer found = ByteBuffer.allocate(expected.length);
    int read = 0;
    while (found.hasRemaining() && read >= 0) {
      read = channel.read(found, found.position());
    }
    if (channel.size() != header.fileBytes() || !Arrays.equals(found.array(), expected)) {
      throw new InvalidArgumentException(path + ": is not the file of these tensors");
    }
  }

  /** Returns the path of the file. */
  public Path path() {
    return path;
  }

  public SafetensorsHeader header() {
    return header;
  }

  /**
   * Writes bytes of a tensor. Several threads may write at once.
   *
   * @param from the offset of the first byte in the tensor
   * @param bytes the buffer to write from its position to its limit
   */
  public void write(String name, long from, ByteBuffer bytes) {
    Objects.requireNonNull(name, "name");
    Objects.requireNonNull(bytes, "bytes");
    if (!channel.isOpen()) {
      throw new ClosedException(path + ": was closed");
    }
    SafetensorsEntry entry =
        header
            .find(name)
            .orElseThrow(
                () ->
                    new InvalidArgumentException(
                        path + ": holds no tensor " + JsonText.quoted(name)));
    if (from < 0 || bytes.remaining() > entry.bytes() - from) {
      throw new InvalidArgumentException(
          path + ": tensor " + JsonText.quoted(name) + ": bytes " + from + " to "
              + (from + bytes.remaining()) + " of " + entry.bytes());
    }
    write(header.dataStart() + entry.begin() + from, bytes);
  }

  private void write(long at, ByteBuffer bytes) {
    try {
      while (bytes.hasRemaining()) {
        at += channel.write(bytes, at);
      }
    } catch (IOException fault) {
      throw FileFault.writing(path, fault);
    }
  }

  /** Syncs everything that was written so far to the disk. Blocks until that is done. */
  public void sync() {
    try {
      channel.force(true);
    } catch (IOException fault) {
      throw FileFault.writing(path, fault);
    }
  }

  @Override
  public void close() {
    try {
      channel.close();
    } catch (IOException fault) {
      throw FileFault.writing(path, fault);
    }
  }
}
