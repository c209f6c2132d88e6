// SPDX-License-Identifier: Apache-2.0
package org.windlass.checkpoint;

import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.channels.FileChannel;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.util.Objects;
import org.jspecify.annotations.Nullable;
import org.windlass.DType;
import org.windlass.Tensor;
import org.windlass.error.ClosedException;
import org.windlass.error.InvalidArgumentException;
import org.windlass.internal.json.JsonText;
import org.windlass.internal.memory.Memory;

/**
 * Reads a safetensors file whose header was checked. Its tensors are views of the mapped file. They
 * are not copied, and writes to them stay private to this process.
 *
 * <p>{@link #tensor} and {@link #bytes} map the file. They check its length, as {@link
 * #checkLength()} does. If another process truncates the file later, a read of the mapping fails
 * with SIGBUS, as for every mapped file. So map only files that do not change. {@link #read} does
 * not map: it throws an exception if the file ends too early.
 */
public final class SafetensorsFile implements AutoCloseable {
  private final Path path;
  private final SafetensorsHeader header;
  private final FileChannel channel;
  private @Nullable Memory mapping;

  private SafetensorsFile(Path path, FileChannel channel, SafetensorsHeader header) {
    this.path = path;
    this.header = header;
    this.channel = channel;
  }

  /**
   * Opens a file and checks its header.
   *
   * @throws InvalidArgumentException if there is no such file or it is malformed; the message names
   *     the file, the tensor and the problem
   * @throws org.windlass.error.ResourceException if it cannot be read
   */
  public static SafetensorsFile open(Path path) {
    Objects.requireNonNull(path, "path");
    FileChannel channel = null;
    try {
      if (Files.isDirectory(path)) {
        throw new InvalidArgumentException(
            path + ": a folder, not a safetensors file; name a file in it");
      }
      if (Files.exists(path) && !Files.isRegularFile(path)) {
        throw new InvalidArgumentException(path + ": not a regular file");
      }
      channel = FileChannel.open(path, StandardOpenOption.READ);
      SafetensorsFile file =
          new SafetensorsFile(path, channel, SafetensorsHeader.read(path, channel));
      channel = null;
      return file;
    } catch (IOException fault) {
      throw FileFault.reading(path, fault);
    } finally {
      closeQuietly(channel);
    }
  }

  /** Returns the path of the file. */
  public Path path() {
    return path;
  }

  /** Returns the header, as it was when the file was opened. */
  public SafetensorsHeader header() {
    return header;
  }

  /**
   * Returns the tensor's entry in the header.
   *
   * @throws InvalidArgumentException if the file has no tensor of that name
   */
  public SafetensorsEntry entry(String name) {
    return header
        .find(name)
        .orElseThrow(
            () ->
                new InvalidArgumentException(path + ": holds no tensor " + JsonText.quoted(name)));
  }

  /**
   * Returns whether a tensor begins at a multiple of its element size, which {@link #tensor}
   * requires. The safetensors format does not require this alignment.
   */
  public boolean isAligned(String name) {
    return header.isAligned(entry(name));
  }

  /**
   * Returns the tensor of that name, as a view of the mapped file.
   *
   * @throws InvalidArgumentException if there is no such tensor, if it is not aligned, or if the
   *     file's length has changed
   * @throws org.windlass.error.UnsupportedException if an element takes less than a byte
   */
  public Tensor tensor(String name) {
    SafetensorsEntry entry = entry(name);
    return view(entry, entry.dtype(), entry.dims());
  }

  /**
   * Returns the same memory as {@link #tensor}, as bytes. This also works for dtypes of less than a
   * byte and for unaligned tensors.
   */
  public Tensor bytes(String name) {
    SafetensorsEntry entry = entry(name);
    return view(entry, DType.U8, entry.bytes());
  }

  private Tensor view(SafetensorsEntry entry, DType dtype, long... shape) {
    requireOpen();
    if (entry.bytes() == 0) {
      return Tensor.allocate(dtype, shape);
    }
    Memory whole = mapping();
    long at = whole.address + header.dataStart() + entry.begin();
    return Tensor.of(at, entry.end() - entry.begin(), whole, dtype, shape);
  }

  /**
   * Reads a tensor's bytes from the file itself, not from the mapping.
   *
   * @param from the offset of the first byte to read, counted from the tensor's first byte
   * @param into the buffer to fill from its position to its limit
   * @throws InvalidArgumentException if there is no such tensor, if it has fewer bytes, or if the
   *     file's length has changed
   */
  public void read(String name, long from, ByteBuffer into) {
    SafetensorsEntry entry = entry(name);
    if (Objects.requireNonNull(into, "into").isReadOnly()) {
      throw new InvalidArgumentException(path + ": into is a read-only buffer");
    }
    requireOpen();
    if (from < 0 || into.remaining() > entry.bytes() - from) {
      throw new InvalidArgumentException(
          path + ": tensor " + JsonText.quoted(name) + ": bytes " + from + " to "
              + (from + into.remaining()) + " of " + entry.bytes());
    }
    long at = header.dataStart() + entry.begin() + from;
    try {
      while (into.hasRemaining()) {
        int read = channel.read(into, at);
        if (read < 0) {
          throw changed(channel.size());
        }
        at += read;
      }
    } catch (IOException fault) {
      throw FileFault.reading(path, fault);
    }
  }

  /**
   * Checks that the file's length has not changed since the header was read.
   *
   * @throws InvalidArgumentException if the length has changed
   */
  public void checkLength() {
    requireOpen();
    try {
      long bytes = channel.size();
      if (bytes != header.fileBytes()) {
        throw changed(bytes);
      }
    } catch (IOException fault) {
      throw FileFault.reading(path, fault);
    }
  }

  private InvalidArgumentException changed(long bytes) {
    return new InvalidArgumentException(
        path + ": has " + bytes + " bytes now, and had "
            + (bytes == header.fileBytes() ? "fewer while it was read" : header.fileBytes() + " when it was opened")
            + "; another program writes to it: run again once that program has ended");
  }

  private void requireOpen() {
    if (!channel.isOpen()) {
      throw new ClosedException(path + ": was closed");
    }
  }

  private synchronized Memory mapping() {
    requireOpen();
    if (mapping == null) {
      mapping = NativeFiles.map(path, header.fileBytes());
    }
    return mapping;
  }

  /**
   * Closes the file. Later use of its tensors throws {@link org.windlass.error.ClosedException}.
   * The file is unmapped once no call uses the mapping any more.
   */
  @Override
  public synchronized void close() {
    if (mapping != null) {
      mapping.end();
    }
    closeQuietly(channel);
  }

  private static void closeQuietly(@Nullable FileChannel channel) {
    if (channel != null) {
      try {
        channel.close();
      } catch (IOException ignored) {
        // Nothing was written through this channel.
      }
    }
  }
}
