// SPDX-License-Identifier: Apache-2.0
package org.windlass.checkpoint;

import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.channels.FileChannel;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.util.List;
import java.util.Map;
import org.windlass.internal.Memory;

/**
 * A new safetensors file of its final size. Its tensors are zero at first, and a transfer writes
 * straight into them. The disk blocks are reserved before anything is mapped: a full disk is an
 * exception here, never a fault later.
 */
public final class SafetensorsWriter extends MappedTensors {
  private final Memory mapping;

  private SafetensorsWriter(Path path, SafetensorsHeader header, Memory mapping) {
    super(path, header);
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

  /** Returns when everything written so far is on the disk. */
  public void sync() {
    try (FileChannel channel = FileChannel.open(path, StandardOpenOption.WRITE)) {
      channel.force(true);
    } catch (IOException fault) {
      throw FileFault.writing(path, fault);
    }
  }

  @Override
  Memory mapping() {
    return mapping;
  }

  @Override
  public void close() {
    mapping.end();
  }
}
