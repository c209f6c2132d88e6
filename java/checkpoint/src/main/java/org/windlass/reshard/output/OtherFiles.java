// SPDX-License-Identifier: Apache-2.0
package org.windlass.reshard.output;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import java.util.Set;
import java.util.regex.Pattern;
import java.util.stream.Stream;
import org.windlass.checkpoint.Checkpoint;
import org.windlass.checkpoint.CheckpointWriter;
import org.windlass.checkpoint.FileFault;
import org.windlass.checkpoint.LayoutFile;
import org.windlass.checkpoint.SafetensorsFile;

/**
 * Lists the other files in IN's folder, such as a model's configuration and its tokenizer. Small
 * files that do not contain weights are copied unchanged. Links to such files count as files.
 *
 * @param copied the files to copy, sorted by name
 * @param leftOut the names of the other files, relative to IN; a folder's name ends in a slash
 */
public record OtherFiles(List<Path> copied, List<String> leftOut) {
  private static final long MOST_BYTES = 64L << 20;
  private static final List<String> ENDINGS =
      List.of(".json", ".jsonl", ".txt", ".model", ".tiktoken", ".jinja", ".py", ".md");
  private static final List<String> BEGINNINGS = List.of("tokenizer", "LICENSE", "NOTICE");
  /**
   * Matches the names of index files of weights, in any format. OUT does not have the files that
   * they list.
   */
  private static final Pattern INDEX = Pattern.compile(".*\\.index(?:\\.[^.]+)?\\.json");

  /**
   * Finds the other files of a checkpoint.
   *
   * @param intoFolder whether OUT is a folder, which can have files other than its tensors
   */
  public static OtherFiles of(Checkpoint in, boolean intoFolder) {
    List<Path> copied = new ArrayList<>();
    List<String> leftOut = new ArrayList<>();
    if (Files.isDirectory(in.path())) {
      Set<Path> tensors = new HashSet<>();
      in.files().stream().map(SafetensorsFile::path).forEach(tensors::add);
      in.index().ifPresent(tensors::add);
      if (in.byRank()) {
        tensors.add(in.path().resolve(LayoutFile.NAME));
      }
      try {
        for (Path file : others(in.path(), tensors)) {
          // OUT has no subfolders.
          if (intoFolder && in.path().equals(file.getParent()) && isCopied(file)) {
            copied.add(file);
          } else {
            leftOut.add(in.path().relativize(file) + (Files.isDirectory(file) ? "/" : ""));
          }
        }
      } catch (IOException fault) {
        throw FileFault.reading(in.path(), fault);
      }
    }
    return new OtherFiles(copied, leftOut);
  }

  /**
   * Returns the files of a folder that hold no tensors, and the subfolders without tensor files.
   */
  private static List<Path> others(Path folder, Set<Path> tensors) throws IOException {
    List<Path> others = new ArrayList<>();
    try (Stream<Path> all = Files.list(folder)) {
      for (Path file : all.filter(each -> !tensors.contains(each)).sorted().toList()) {
        if (Files.isDirectory(file) && tensors.stream().anyMatch(each -> each.startsWith(file))) {
          others.addAll(others(file, tensors));
        } else {
          others.add(file);
        }
      }
    }
    return others;
  }

  private static boolean isCopied(Path file) throws IOException {
    String name = file.getFileName().toString();
    return Files.isRegularFile(file)
        && Files.size(file) <= MOST_BYTES
        && (ENDINGS.stream().anyMatch(name::endsWith)
            || BEGINNINGS.stream().anyMatch(name::startsWith))
        && !INDEX.matcher(name).matches()
        && !name.equals(LayoutFile.NAME)
        && name.indexOf('\\') < 0;
  }

  /** Adds the copies to the written checkpoint. */
  public void copyTo(CheckpointWriter writer) {
    for (Path file : copied) {
      try {
        writer.text(file.getFileName().toString(), Files.readAllBytes(file));
      } catch (IOException fault) {
        throw FileFault.reading(file, fault);
      }
    }
  }

  /** Returns the names of the copies. */
  public List<String> copiedNames() {
    return copied.stream().map(file -> file.getFileName().toString()).toList();
  }
}
