// SPDX-License-Identifier: Apache-2.0
package org.windlass.reshard.output;

import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import org.windlass.checkpoint.CheckpointWriter;
import org.windlass.checkpoint.SafetensorsHeader.Item;
import org.windlass.checkpoint.SafetensorsWriter;

/**
 * Provides the files of a checkpoint that is being written, in the process that creates them or in
 * another one.
 */
public sealed interface OutputFiles {
  /** Provides files with the same tensors. */
  List<SafetensorsWriter> files(
      List<String> names, List<Item> items, Map<String, String> metadata);

  SafetensorsWriter single(List<Item> items, Map<String, String> metadata);

  void text(String name, CheckpointWriter.Text text);

  /** Creates the files with the writer of this process. */
  record Made(CheckpointWriter writer) implements OutputFiles {
    @Override
    public List<SafetensorsWriter> files(
        List<String> names, List<Item> items, Map<String, String> metadata) {
      return writer.files(names, items, metadata);
    }

    @Override
    public SafetensorsWriter single(List<Item> items, Map<String, String> metadata) {
      return writer.single(items, metadata);
    }

    @Override
    public void text(String name, CheckpointWriter.Text text) {
      writer.text(name, text);
    }
  }

  /** Opens the files that a writer of another process has created. Closing this closes them. */
  final class Opened implements OutputFiles, AutoCloseable {
    private final Path content;
    private final List<SafetensorsWriter> files = new ArrayList<>();

    /** Uses the path of the writer's files, {@link CheckpointWriter#staged}. */
    public Opened(Path content) {
      this.content = content;
    }

    @Override
    public List<SafetensorsWriter> files(
        List<String> names, List<Item> items, Map<String, String> metadata) {
      return names.stream()
          .map(name -> open(content.resolve(name), items, metadata))
          .toList();
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
    public void text(String name, CheckpointWriter.Text text) {
      // The writer's process has written the file.
    }

    @Override
    public void close() {
      files.forEach(SafetensorsWriter::close);
    }
  }
}
