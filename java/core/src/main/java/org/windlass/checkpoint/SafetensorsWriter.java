// SPDX-License-Identifier: Apache-2.0
package org.windlass.checkpoint;

import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.channels.FileChannel;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.util.List;
import java.util.Map;
import org.windlass.DType;
import org.windlass.InvalidArgumentException;
import org.windlass.Tensor;
import org.windlass.internal.Memory;
import org.windlass.internal.TensorAccess;

/**
 * A new safetensors file of its final size. Its tensors are views of the mapped file, zero at
 * first, so that a transfer writes straight into it. The disk blocks are reserved before anything
 * is mapped: a full disk is an exception here, never a fault later.
 */
public final class SafetensorsWriter implements AutoCloseable {
  private final Path path;
  private final SafetensorsHeader header;
  private final Memory mapping;

  private SafetensorsWriter(Path path, SafetensorsHeader header, Memory mapping) {
    this.path = path;
    this.header = header;
    this.mapping = mapping;
  }

  /**
   * Makes the file and writes its header.
   *
   * @param path where no file may be yet
   * @param items the tensors, in the order of the file
   * @throws org.windlass.ResourceException if the disk is full; then no file is left
   */
  public static SafetensorsWriter create(
      Path path, List<SafetensorsHeader.Item> items, Map<String, String> metadata) {
    SafetensorsHeader header = SafetensorsHeader.of(items, metadata);
    NativeFiles.create(path, header.fileBytes());
    try (FileChannel channel = FileChannel.open(path, StandardOpenOption.WRITE)) {
      ByteBuffer bytes = ByteBuffer.wrap(header.encode());
      while (bytes.hasRemaining()) {
        channel.write(bytes, bytes.position());
      }
    } catch (IOException fault) {
      throw FileFault.writing(path, fault);
    }
    return new SafetensorsWriter(path, header, MappedFile.shared(path, header.fileBytes()));
  }

  /** Where the file is. */
  public Path path() {
    return path;
  }

  /** What the file holds. */
  public SafetensorsHeader header() {
    return header;
  }

  /** Whether a tensor lies at a multiple of its element size, as {@link #tensor} needs it. */
  public boolean isAligned(String name) {
    return header.isAligned(entry(name));
  }

  /** The tensor of that name, in the mapped file; see {@link SafetensorsFile#tensor}. */
  public Tensor tensor(String name) {
    SafetensorsEntry entry = entry(name);
    return view(entry, entry.dtype(), entry.dims());
  }

  /**
   * The same memory as {@link #tensor} shows, as bytes: for dtypes of less than a byte, and for
   * unaligned ones.
   */
  public Tensor bytes(String name) {
    SafetensorsEntry entry = entry(name);
    return view(entry, DType.U8, entry.bytes());
  }

  private Tensor view(SafetensorsEntry entry, DType dtype, long... shape) {
    if (entry.bytes() == 0) {
      return Tensor.allocate(dtype, shape);
    }
    return TensorAccess.tensor(mapping, header.dataStart() + entry.begin(), dtype, shape);
  }

  private SafetensorsEntry entry(String name) {
    return header
        .find(name)
        .orElseThrow(
            () ->
                new InvalidArgumentException(path + ": holds no tensor " + JsonText.quoted(name)));
  }

  /** Returns when everything written so far is on the disk. */
  public void sync() {
    try (FileChannel channel = FileChannel.open(path, StandardOpenOption.WRITE)) {
      channel.force(true);
    } catch (IOException fault) {
      throw FileFault.writing(path, fault);
    }
  }

  /** Lets go of the file. Later use of its tensors throws Closed. */
  @Override
  public void close() {
    mapping.end();
  }
}
