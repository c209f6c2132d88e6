// SPDX-License-Identifier: Apache-2.0
package org.windlass.checkpoint;

import java.io.IOException;
import java.nio.file.DirectoryStream;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Collections;
import java.util.HashMap;
import java.util.HashSet;
import java.util.LinkedHashMap;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.Optional;
import java.util.Set;
import java.util.SortedMap;
import java.util.TreeMap;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.windlass.error.InvalidArgumentException;
import org.windlass.internal.json.JsonText;
import org.windlass.layout.DeviceMesh;

/**
 * Reads a checkpoint on disk.
 *
 * <p>A checkpoint has one of three forms: a safetensors file with whole tensors, the files of an
 * index, or rank files. Each rank file ({@code rank-00000.safetensors} and so on) holds the local
 * tensors of one rank. {@link #open} reads and checks every header, but reads no tensor data.
 */
public final class Checkpoint implements AutoCloseable {
  private static final Pattern RANK_FILE = Pattern.compile("rank-([0-9]+)\\.safetensors");

  private final Path path;
  private final List<SafetensorsFile> files = new ArrayList<>();
  private final SortedMap<Integer, SafetensorsFile> ranks = new TreeMap<>();
  private final Map<String, String> metadata = new LinkedHashMap<>();
  private final List<String> notes = new ArrayList<>();
  private Optional<Path> index = Optional.empty();
  private Optional<LayoutFile> layouts = Optional.empty();
  private Set<String> names = Set.of();
  /** File of each tensor, from the index. */
  private Map<String, SafetensorsFile> indexed = Map.of();

  private Checkpoint(Path path) {
    this.path = path;
  }

  /**
   * Opens a file or a folder and checks the header of each safetensors file in it.
   *
   * @throws InvalidArgumentException if the path does not exist, is malformed, or is not a
   *     checkpoint; the message names the file
   * @throws org.windlass.error.ResourceException if a file cannot be read
   */
  public static Checkpoint open(Path path) {
    Checkpoint checkpoint = new Checkpoint(Objects.requireNonNull(path, "path"));
    boolean isRead = false;
    try {
      checkpoint.read();
      isRead = true;
      return checkpoint;
    } catch (IOException fault) {
      throw FileFault.reading(path, fault);
    } finally {
      if (!isRead) {
        checkpoint.close();
      }
    }
  }

  private void read() throws IOException {
    boolean isFolder = Files.isDirectory(path);
    SortedMap<Integer, Path> found = isFolder ? rankFiles(path) : new TreeMap<>();
    index = isFolder ? SafetensorsIndex.find(path) : index;
    if (index.isPresent() && !found.isEmpty()) {
      throw new InvalidArgumentException(
          path + ": holds both " + index.get().getFileName()
              + " and rank files; move away those that should not be read");
    }
    if (index.isPresent()) {
      readIndexed(index.get());
    } else if (found.isEmpty()) {
      names = open(isFolder ? only(path) : path, files).header().names();
    } else {
      readRanks(found);
    }
    readMetadata();
  }

  private static SafetensorsFile open(Path path, List<SafetensorsFile> files) {
    SafetensorsFile file = SafetensorsFile.open(path);
    files.add(file);
    return file;
  }

  /** Returns the only safetensors file of a folder. Throws if it is not the whole checkpoint. */
  private static Path only(Path folder) throws IOException {
    List<Path> found = new ArrayList<>();
    try (DirectoryStream<Path> files =
        Files.newDirectoryStream(folder, "*" + Names.SAFETENSORS)) {
      files.forEach(found::add);
    }
    if (found.size() == 1) {
      requireWhole(found.get(0));
      return found.get(0);
    }
    Collections.sort(found);
    throw new InvalidArgumentException(
        folder + ": holds neither " + SafetensorsIndex.NAME + " nor rank-00000.safetensors, and "
            + (found.isEmpty()
                ? "no other safetensors file"
                : found.size() + " safetensors files, such as " + found.get(0).getFileName() + " and "
                    + found.get(1).getFileName() + "; give one by its own name, or an index of them"));
  }

  private static void requireWhole(Path file) {
    Matcher matcher = SafetensorsIndex.OF_SEVERAL.matcher(file.getFileName().toString());
    if (matcher.find() && !matcher.group(2).matches("0*1?")) {
      throw new InvalidArgumentException(
          file + ": is number " + matcher.group(1) + " of " + matcher.group(2) + " by its name, and"
              + " the other files and an index of them are missing; complete the folder, or give"
              + " this file by its own name");
    }
  }

  private void readIndexed(Path indexFile) throws IOException {
    SafetensorsIndex index = SafetensorsIndex.read(indexFile);
    requireOnly(path, indexFile, index);
    Map<String, SafetensorsFile> byName = new LinkedHashMap<>();
    for (String name : index.files().values()) {
      if (!byName.containsKey(name)) {
        byName.put(name, open(path.resolve(name), files));
      }
    }
    indexed = new LinkedHashMap<>();
    index
        .files()
        .forEach(
            (tensor, name) -> {
              SafetensorsFile file = Objects.requireNonNull(byName.get(name));
              file.entry(tensor);
              indexed.put(tensor, file);
            });
    names = indexed.keySet();
    byName.forEach(
        (name, file) -> {
          List<String> ignored =
              file.header().tensors().stream()
                  .map(SafetensorsEntry::name)
                  .filter(tensor -> !name.equals(index.files().get(tensor)))
                  .toList();
          if (!ignored.isEmpty()) {
            notes.add(
                file.path() + ": tensor " + JsonText.quoted(ignored.get(0))
                    + (ignored.size() == 1 ? " is" : " and " + (ignored.size() - 1) + " more are")
                    + " not read, since the weight_map of " + indexFile.getFileName() + " has "
                    + (index.files().containsKey(ignored.get(0))
                        ? "it in " + index.files().get(ignored.get(0))
                        : "no such tensor"));
          }
        });
  }

  /** Throws if the folder holds a safetensors file that the index should list but does not. */
  private static void requireOnly(Path folder, Path indexFile, SafetensorsIndex index)
      throws IOException {
    Set<String> listed = Set.copyOf(index.files().values());
    try (DirectoryStream<Path> files =
        Files.newDirectoryStream(folder, "*" + Names.SAFETENSORS)) {
      for (Path file : files) {
        String name = file.getFileName().toString();
        if (listed.isEmpty()) {
          throw new InvalidArgumentException(
              indexFile + ": weight_map is empty, and " + name
                  + " is in the same folder; list its tensors in the index, or give the file"
                  + " itself");
        }
        if (!listed.contains(name) && SafetensorsIndex.isOfModel(indexFile, name)) {
          throw new InvalidArgumentException(
              folder + ": holds " + indexFile.getFileName() + " and " + name
                  + ", which the index does not list; give the file by its own name, or move it"
                  + " away so that the index is read");
        }
      }
    }
  }

  private void readRanks(SortedMap<Integer, Path> found) throws IOException {
    names = new LinkedHashSet<>();
    for (Map.Entry<Integer, Path> entry : found.entrySet()) {
      SafetensorsFile file = open(entry.getValue(), files);
      ranks.put(entry.getKey(), file);
      names.addAll(file.header().names());
    }
    Path layoutFile = path.resolve(LayoutFile.NAME);
    if (!Files.exists(layoutFile)) {
      return;
    }
    layouts = Optional.of(LayoutFile.read(layoutFile));
    for (String name : layouts.get().tensors().keySet()) {
      if (!names.contains(name)) {
        throw new InvalidArgumentException(
            layoutFile + ": lists tensor " + JsonText.quoted(name)
                + ", which no rank file holds; remove its entry");
      }
    }
  }

  private static SortedMap<Integer, Path> rankFiles(Path folder) throws IOException {
    SortedMap<Integer, Path> files = new TreeMap<>();
    try (DirectoryStream<Path> entries = Files.newDirectoryStream(folder)) {
      for (Path entry : entries) {
        Matcher matcher = RANK_FILE.matcher(entry.getFileName().toString());
        if (matcher.matches()) {
          String digits = matcher.group(1);
          int rank = digits.length() > 9 ? DeviceMesh.MAX_RANKS : Integer.parseInt(digits);
          if (rank >= DeviceMesh.MAX_RANKS
              || !rankFile(rank).equals(entry.getFileName().toString())) {
            throw new InvalidArgumentException(
                entry + ": ranks are below " + DeviceMesh.MAX_RANKS
                    + " and written with five digits or more, as in rank-00008.safetensors;"
                    + " rename it");
          }
          files.put(rank, entry);
        }
      }
    }
    return files;
  }

  /** Returns the name of a rank's file in a folder of rank files. */
  public static String rankFile(int rank) {
    if (rank < 0 || rank >= DeviceMesh.MAX_RANKS) {
      throw new InvalidArgumentException(
          "rank is " + rank + "; it must lie in [0, " + DeviceMesh.MAX_RANKS + ")");
    }
    return String.format(java.util.Locale.ROOT, "rank-%05d.safetensors", rank);
  }

  /** Merges the files' metadata. Omits a key whose values differ, and adds a note about it. */
  private void readMetadata() {
    Map<String, Path> first = new HashMap<>();
    Set<String> differing = new HashSet<>();
    for (SafetensorsFile file : files) {
      file.header()
          .metadata()
          .forEach(
              (key, value) -> {
                String before = metadata.putIfAbsent(key, value);
                if (before != null && !before.equals(value) && differing.add(key)) {
                  notes.add(
                      file.path() + ": __metadata__ " + JsonText.quoted(key) + " is "
                          + JsonText.quoted(value) + ", and " + JsonText.quoted(before) + " in "
                          + first.get(key) + "; it is left out of the output");
                }
                first.putIfAbsent(key, file.path());
              });
    }
    metadata.keySet().removeAll(differing);
  }

  /** Returns the path of the checkpoint. */
  public Path path() {
    return path;
  }

  /** Returns whether each file holds one rank's local tensors. */
  public boolean byRank() {
    return !ranks.isEmpty();
  }

  /** Returns the names of all tensors, in the order of the file, the index, or the rank files. */
  public Set<String> names() {
    return Collections.unmodifiableSet(names);
  }

  /** Returns the path of the index, if the checkpoint has one. */
  public Optional<Path> index() {
    return index;
  }

  /** Returns notes for a user about unusual files. The checkpoint is readable despite them. */
  public List<String> notes() {
    return Collections.unmodifiableList(notes);
  }

  /** Returns the {@code __metadata__} of all files. A key whose values differ is left out. */
  public Map<String, String> metadata() {
    return Collections.unmodifiableMap(metadata);
  }

  /** Returns the rank files, keyed by rank. The map is empty if the tensors are whole. */
  public SortedMap<Integer, SafetensorsFile> ranks() {
    return Collections.unmodifiableSortedMap(ranks);
  }

  /** Returns the folder's {@code layout.json}, if there is one. */
  public Optional<LayoutFile> layouts() {
    return layouts;
  }

  /**
   * Returns the file that holds the whole tensor of that name.
   *
   * @throws InvalidArgumentException if no file does
   */
  public SafetensorsFile whole(String name) {
    if (!names.contains(Objects.requireNonNull(name, "name")) || byRank()) {
      throw new InvalidArgumentException(path + ": holds no whole tensor " + JsonText.quoted(name));
    }
    return indexed.getOrDefault(name, files.get(0));
  }

  /** Returns every file, once. */
  public List<SafetensorsFile> files() {
    return Collections.unmodifiableList(files);
  }

  @Override
  public void close() {
    files.forEach(SafetensorsFile::close);
  }
}
