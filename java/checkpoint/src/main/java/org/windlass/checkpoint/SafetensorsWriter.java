// SPDX-License-Identifier: Apache-2.0
package org.windlass.checkpoint;

import java.io.EOFException;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.ByteBuffer;
import java.nio.channels.FileChannel;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.Optional;
import org.windlass.error.ClosedException;
import org.windlass.error.InvalidArgumentException;
import org.windlass.internal.json.JsonText;

/**
 * Writes a new safetensors file of its final size, whose tensors are zero at first. {@link #create}
 * reserves the disk blocks, so if the disk is full, {@code create} throws, and later writes do not.
 * Several processes may write the file at once: one creates it, and the others open it.
 */
public final class SafetensorsWriter implements AutoCloseable {
  private final Path path;
  private final FileChannel channel;
  private final long dataStart;
  private final long dataBytes;
  private Optional<SafetensorsHeader> header;

  private SafetensorsWriter(Path path, SafetensorsHeader header, FileChannel channel) {
    this.path = path;
    this.channel = channel;
    this.dataStart = header.dataStart();
    this.dataBytes = header.fileBytes() - header.dataStart();
    this.header = Optional.of(header);
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
        SafetensorsHeader.of(Objects.requireNonNull(path, "path").toString(), items, metadata);
    return create(path, header, Optional.empty());
  }

  /** Creates a file. Copies the header from {@code like}, unless that is empty. */
  static SafetensorsWriter create(
      Path path, SafetensorsHeader header, Optional<SafetensorsWriter> like) {
    NativeFiles.create(path, header.fileBytes());
    try {
      FileChannel channel = FileChannel.open(path, StandardOpenOption.WRITE);
      SafetensorsWriter file = new SafetensorsWriter(path, header, channel);
      try {
        if (like.isPresent()) {
          file.copyHeader(like.get().path);
        } else {
          header.encode(file::writeNext);
        }
        return file;
      } catch (IOException | RuntimeException failed) {
        file.close();
        throw failed;
      }
    } catch (UncheckedIOException fault) {
      throw FileFault.writing(path, Objects.requireNonNull(fault.getCause()));
    } catch (IOException fault) {
      throw FileFault.writing(path, fault);
    }
  }

  private void copyHeader(Path like) throws IOException {
    try (FileChannel from = FileChannel.open(like, StandardOpenOption.READ)) {
      for (long at = 0, copied = 1; at < dataStart; at += copied) {
        copied = from.transferTo(at, dataStart - at, channel);
        if (copied == 0) {
          throw new EOFException(like + " ends at byte " + at + ", inside its header");
        }
      }
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
        SafetensorsHeader.of(Objects.requireNonNull(path, "path").toString(), items, metadata);
    try {
      FileChannel channel =
          FileChannel.open(path, StandardOpenOption.READ, StandardOpenOption.WRITE);
      SafetensorsWriter file = new SafetensorsWriter(path, header, channel);
      try {
        header.encode(file::requireNext);
        if (channel.size() == header.fileBytes()) {
          return file;
        }
        throw file.differs();
      } catch (IOException | RuntimeException refused) {
        file.close();
        throw refused;
      }
    } catch (UncheckedIOException fault) {
      throw FileFault.reading(path, Objects.requireNonNull(fault.getCause()));
    } catch (IOException fault) {
      throw FileFault.reading(path, fault);
    }
  }

  private void writeNext(ByteBuffer bytes) throws IOException {
    while (bytes.hasRemaining()) {
      channel.write(bytes);
    }
  }

  /** Throws InvalidArgumentException unless the file's next bytes equal {@code expected}. */
  private void requireNext(ByteBuffer expected) throws IOException {
    ByteBuffer found = ByteBuffer.allocate(expected.remaining());
    while (found.hasRemaining() && channel.read(found) >= 0) {
      // One read may return a part.
    }
    if (!found.flip().equals(expected)) {
      throw differs();
    }
  }

  private InvalidArgumentException differs() {
    return new InvalidArgumentException(path + ": has another header than that of these tensors");
  }

  /** Returns the path of the file. */
  public Path path() {
    return path;
  }

  /**
   * Returns the header of the file.
   *
   * @throws ClosedException after {@link #dropHeader}
   */
  public synchronized SafetensorsHeader header() {
    return header.orElseThrow(() -> new ClosedException(path + ": its header was dropped"));
  }

  /**
   * Frees the memory of the header, for callers that know where tensors begin. Afterwards, only
   * {@link #write(long, ByteBuffer)} can write.
   *
   * @hidden
   */
  public synchronized void dropHeader() {
    header = Optional.empty();
  }

  long fileBytes() {
    return dataStart + dataBytes;
  }

  /**
   * Writes bytes of a tensor. Several threads may write at once.
   *
   * @param from the offset of the first byte to write, counted from the tensor's first byte
   * @param bytes the buffer to write from its position to its limit
   * @throws InvalidArgumentException if there is no such tensor or it has fewer bytes
   */
  public void write(String name, long from, ByteBuffer bytes) {
    Objects.requireNonNull(name, "name");
    Objects.requireNonNull(bytes, "bytes");
    requireOpen();
    SafetensorsEntry entry =
        header()
            .find(name)
            .orElseThrow(
                () ->
                    new InvalidArgumentException(
                        path + ": holds no tensor " + JsonText.quoted(name)));
    requireWithin("tensor " + JsonText.quoted(name) + ": ", from, bytes, entry.bytes());
    write(entry.begin() + from, bytes);
  }

  /**
   * Writes bytes of the file's data. Several threads may write at once.
   *
   * @param from the offset of the first byte to write, counted from the end of the header
   * @param bytes the buffer to write from its position to its limit
   * @hidden
   */
  public void write(long from, ByteBuffer bytes) {
    requireOpen();
    requireWithin("", from, bytes, dataBytes);
    long at = dataStart + from;
    try {
      while (bytes.hasRemaining()) {
        at += channel.write(bytes, at);
      }
    } catch (IOException fault) {
      throw FileFault.writing(path, fault);
    }
  }

  private void requireOpen() {
    if (!channel.isOpen()) {
      throw new ClosedException(path + ": was closed");
    }
  }

  private void requireWithin(String what, long from, ByteBuffer bytes, long most) {
    if (from < 0 || bytes.remaining() > most - from) {
      throw new InvalidArgumentException(
          path + ": " + what + "bytes " + from + " to " + (from + bytes.remaining()) + " of "
              + most);
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
