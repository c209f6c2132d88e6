// SPDX-License-Identifier: Apache-2.0
package org.windlass.reshard.output;

import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import org.windlass.checkpoint.CheckpointWriter;
import org.windlass.checkpoint.SafetensorsHeader.Item;
import org.windlass.checkpoint.SafetensorsWriter;

/** The files of a checkpoint in the making, as the process sees them that makes it, or another. */
public sealed interface OutputFiles {
  /** The safetensors file of that name in the folder. */
  SafetensorsWriter file(String name, List<Item> items, Map<String, String> metadata);

  /** The one safetensors file that the checkpoint is. */
  SafetensorsWriter single(List<Item> items, Map<String, String> metadata);

  /** A small file in the folder. */
  void text(String name, byte[] bytes);

  /** Those that a writer makes. */
  record Made(CheckpointWriter writer) implements OutputFiles {
    @Override
    public SafetensorsWriter file(String name, List<Item> items, Map<String, String> metadata) {
      return writer.file(name, items, metadata);
    }

    @Override
    public SafetensorsWriter single(List<Item> items, Map<String, String> metadata) {
      return writer.single(items, metadata);
    }

    @Override
    public void text(String name, byte[] bytes) {
      writer.text(name, bytes);
    }
  }

  /** Those that a writer of another process has made, until they are closed. */
  final class Opened implements OutputFiles, AutoCloseable {
    private final Path content;
    private final List<SafetensorsWriter> files = new ArrayList<>();

    /** Takes where the writer has them: {@link CheckpointWriter#staged}. */
    public Opened(Path content) {
      this.content = content;
    }

    @Override
    public SafetensorsWriter file(String name, List<Item> items, Map<String, String> metadata) {
      return open(content.resolve(name), items, metadata);
    }

    @Override
    public SafetensorsWriter single(List<Item> items, Map<String, String> metadata) {
      return open(content, items, metadata);
    }

    private SafetensorsWriter open(Path path, List<Item> items, Map<String, String> metadata) {
      SafetensorsWriter file = SafetensorsWriter.open(path, items, metadata);
      files.add(file);
      return file;
    }

    @Override
    public void text(String name, byte[] bytes) {
      // The writer has written it.
    }

    @Override
    public void close() {
      files.forEach(SafetensorsWriter::close);
    }
  }
}
