// SPDX-License-Identifier: Apache-2.0
package org.windlass.checkpoint;

import java.io.IOException;
import java.io.OutputStream;
import java.nio.channels.FileChannel;
import java.nio.file.FileSystems;
import java.nio.file.Files;
import java.nio.file.LinkOption;
import java.nio.file.NoSuchFileException;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.nio.file.attribute.BasicFileAttributes;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import org.windlass.error.ClosedException;
import org.windlass.error.InvalidArgumentException;
import org.windlass.error.ResourceException;
import org.windlass.error.WindlassException;
import org.windlass.internal.Daemon;
import org.windlass.internal.json.JsonText;

/**
 * Writes a checkpoint: a folder or a single file that appears complete or not at all.
 *
 * <p>The writer fills a work folder next to the checkpoint's path, syncs it to the disk, and
 * renames it at {@link #commit}. A writer that is closed without a commit leaves no files. If a
 * process is killed and leaves a work folder, the next writer in the same folder removes it.
 */
public final class CheckpointWriter implements AutoCloseable {
  private static final String CONTENT = "content";
  private static final int SYNC_THREADS = 16;

  private final Path out;
  private final boolean replace;
  private final WorkFolder work;
  private final List<SafetensorsWriter> files = new ArrayList<>();

  /** Length of each file in bytes. A single-file checkpoint has one entry, for {@link #content}. */
  private final Map<Path, Long> written = new LinkedHashMap<>();

  private boolean ended;
  private boolean committed;

  private CheckpointWriter(Path out, boolean replace, WorkFolder work) {
    this.out = out;
    this.replace = replace;
    this.work = work;
  }

  /**
   * Begins a checkpoint.
   *
   * @param out the name that the checkpoint will have
   * @param replace whether {@code out} may exist already. If it exists, it must be an empty folder,
   *     or an unchanged checkpoint from a CheckpointWriter. The commit replaces it in one step, and
   *     deletes its content
   * @throws InvalidArgumentException if {@code out} exists and may not be replaced, if another
   *     writer is making it, or if its folder does not exist
   * @throws ResourceException if the folder cannot be written
   */
  public static CheckpointWriter begin(Path out, boolean replace) {
    Path place = place(out);
    Path folder = place.getParent();
    if (folder == null) {
      throw new InvalidArgumentException(out + ": is the root folder");
    }
    if (isThere(out, place)) {
      if (!replace) {
        throw new InvalidArgumentException(out + ": exists already");
      }
      WriteMark.requireReplaceable(out, place);
    }
    WorkFolder.removeAbandoned(folder);
    return new CheckpointWriter(
        place, replace, WorkFolder.create(folder, place.getFileName().toString()));
  }

  /**
   * Returns whether {@code place} exists. If this is unknown, throws an exception whose message
   * names {@code out}.
   */
  private static boolean isThere(Path out, Path place) {
    try {
      Files.readAttributes(place, BasicFileAttributes.class, LinkOption.NOFOLLOW_LINKS);
      return true;
    } catch (NoSuchFileException free) {
      return false;
    } catch (IOException fault) {
      throw FileFault.writing(out, fault);
    }
  }

  /**
   * Returns the path at which a checkpoint of this name appears. Symbolic links in the path of the
   * folder are followed. If the name itself is a symbolic link, it is not followed.
   *
   * @throws InvalidArgumentException if its folder does not exist, or is not on the machine's own
   *     file system, such as in an archive
   * @throws ResourceException if its folder cannot be reached
   */
  public static Path place(Path out) {
    Objects.requireNonNull(out, "out");
    if (out.getFileSystem() != FileSystems.getDefault()) {
      throw new InvalidArgumentException(
          out + ": is a path of " + out.getFileSystem().provider().getScheme()
              + "; checkpoints can only be written to the machine's own file system");
    }
    Path absolute = out.toAbsolutePath();
    Path name = absolute.getFileName();
    try {
      if (name == null || name.toString().equals(".") || name.toString().equals("..")) {
        return absolute.toRealPath();
      }
      Path folder = Objects.requireNonNull(absolute.getParent()).toRealPath();
      if (!Files.isDirectory(folder)) {
        throw new InvalidArgumentException(
            out + ": a part of this path is a file; name a folder instead");
      }
      return folder.resolve(name);
    } catch (IOException fault) {
      throw FileFault.writing(out, fault);
    }
  }

  /**
   * Adds a safetensors file to the folder.
   *
   * @param name the name of a file in the folder itself; it ends in {@code .safetensors}
   * @throws InvalidArgumentException if the folder has a file of that name, the checkpoint is a
   *     single file, or a reader would not accept the name of the file or of a tensor
   */
  public SafetensorsWriter file(
      String name, List<SafetensorsHeader.Item> items, Map<String, String> metadata) {
    return files(List.of(Objects.requireNonNull(name, "name")), items, metadata).get(0);
  }

  /**
   * Adds safetensors files with the same tensors to the folder, as {@link #file} does.
   *
   * @hidden
   */
  public synchronized List<SafetensorsWriter> files(
      List<String> names, List<SafetensorsHeader.Item> items, Map<String, String> metadata) {
    checkOpen();
    List<Path> paths = new ArrayList<>();
    for (String name : names) {
      Path path = Names.safetensors(out.toString(), content(), name);
      requireNew(path);
      paths.add(path);
    }
    makeFolder();
    return create(paths, items, metadata);
  }

  /**
   * Makes the checkpoint a single safetensors file.
   *
   * @throws InvalidArgumentException if the checkpoint already has files, or a reader would not
   *     accept the name of a tensor
   */
  public synchronized SafetensorsWriter single(
      List<SafetensorsHeader.Item> items, Map<String, String> metadata) {
    checkOpen();
    if (!written.isEmpty()) {
      throw new InvalidArgumentException(out + ": holds a file already");
    }
    return create(List.of(content()), items, metadata).get(0);
  }

  private List<SafetensorsWriter> create(
      List<Path> paths, List<SafetensorsHeader.Item> items, Map<String, String> metadata) {
    SafetensorsHeader header = SafetensorsHeader.of(paths.get(0).toString(), items, metadata);
    List<SafetensorsWriter> created = new ArrayList<>();
    for (Path path : paths) {
      SafetensorsWriter file =
          SafetensorsWriter.create(path, header, created.stream().findFirst());
      created.add(file);
      files.add(file);
      written.put(path, file.fileBytes());
    }
    return created;
  }

  /**
   * Adds a small file to the folder.
   *
   * @param name the name of a file in the folder itself
   * @throws InvalidArgumentException if the folder has a file of that name, or the checkpoint is a
   *     single file
   */
  public void text(String name, byte[] bytes) {
    Objects.requireNonNull(bytes, "bytes");
    text(name, out -> out.write(bytes));
  }

  /**
   * Writes the content of a file.
   *
   * @hidden
   */
  @FunctionalInterface
  public interface Text {
    void write(OutputStream out) throws IOException;
  }

  /**
   * Adds a small file to the folder, as {@link #text(String, byte[])} does.
   *
   * @hidden
   */
  public synchronized void text(String name, Text text) {
    checkOpen();
    Objects.requireNonNull(name, "name");
    Path path = Names.file(out.toString(), content(), name);
    requireNew(path);
    makeFolder();
    try {
      try (OutputStream out =
          Files.newOutputStream(path, StandardOpenOption.WRITE, StandardOpenOption.CREATE_NEW)) {
        text.write(out);
      }
      try (FileChannel channel = FileChannel.open(path, StandardOpenOption.WRITE)) {
        channel.force(true);
        written.put(path, channel.size());
      }
    } catch (IOException fault) {
      throw FileFault.writing(path, fault);
    }
  }

  private void makeFolder() {
    try {
      if (!Files.isDirectory(content())) {
        Files.createDirectory(content());
      }
    } catch (IOException fault) {
      throw FileFault.writingFolder(content(), fault);
    }
  }

  private void requireNew(Path path) {
    String name = JsonText.quoted(path.getFileName().toString());
    if (written.containsKey(content())) {
      throw new InvalidArgumentException(
          out + ": is a single file already, which holds no " + name);
    }
    if (written.containsKey(path)) {
      throw new InvalidArgumentException(out + ": holds a file " + name + " already");
    }
  }

  private Path content() {
    return work.path().resolve(CONTENT);
  }

  private void checkOpen() {
    if (ended) {
      throw new ClosedException(out + ": its writer has ended");
    }
  }

  /** Returns the path of the content before the commit, so that it can be read back. */
  public Path staged() {
    return content();
  }

  /** Syncs everything that was written to the disk. Blocks until that is done. */
  public synchronized void sync() {
    checkOpen();
    syncFiles();
    if (Files.isDirectory(content())) {
      syncFolder(content());
    }
    syncFolder(work.path());
  }

  /**
   * Syncs all files at once. A file system commits concurrent syncs together, which is much faster
   * than one sync after another. An interrupt does not end the wait, but stays set.
   */
  private void syncFiles() {
    ExecutorService threads =
        Executors.newFixedThreadPool(
            SYNC_THREADS, body -> Daemon.thread("windlass-sync", body));
    try {
      Daemon.join(
          CompletableFuture.allOf(
              files.stream()
                  .map(file -> CompletableFuture.runAsync(file::sync, threads))
                  .toArray(CompletableFuture[]::new)));
    } finally {
      threads.shutdownNow();
    }
  }

  /**
   * Gives the checkpoint its name. Call {@link #sync()} first.
   *
   * @throws InvalidArgumentException if nothing was written, or if a file or folder of that name
   *     has appeared and may not be replaced
   * @throws org.windlass.error.UnsupportedException if the file system cannot exchange two names
   * @throws ResourceException if another program has removed or changed the written files
   */
  public synchronized void commit() {
    checkOpen();
    if (written.isEmpty()) {
      throw new InvalidArgumentException(out + ": nothing was written");
    }
    written.forEach(this::requireWritten);
    written.keySet().forEach(WriteMark::set);
    WriteMark.set(content());
    if (replace && Files.exists(out, LinkOption.NOFOLLOW_LINKS)) {
      exchange();
    } else {
      NativeFiles.publish(content(), out);
    }
    committed = true;
    syncFolder(Objects.requireNonNull(out.getParent()));
    try {
      close();
    } catch (WindlassException left) {
      // The checkpoint has its name. The next writer in this folder removes the rest of the work
      // folder.
    }
  }

  private void requireWritten(Path path, long bytes) {
    try {
      if (Files.size(path) == bytes) {
        return;
      }
    } catch (NoSuchFileException gone) {
      // The exception below names the file.
    } catch (IOException fault) {
      throw FileFault.reading(path, fault);
    }
    throw new ResourceException(
        out + ": another program removed or changed " + path.getFileName() + " in "
            + work.path() + " before it was complete; write it again");
  }

  /**
   * Exchanges the content with the file or folder at {@code out}. Throws if that may not be
   * replaced.
   */
  private void exchange() {
    WriteMark.requireReplaceable(out, out);
    NativeFiles.exchange(content(), out);
    try {
      WriteMark.requireReplaceable(out, content());
    } catch (WindlassException changedMeanwhile) {
      NativeFiles.exchange(content(), out);
      throw changedMeanwhile;
    }
  }

  /** Returns whether the checkpoint was committed. Waits for a {@link #commit} that has begun. */
  public synchronized boolean isCommitted() {
    return committed;
  }

  /**
   * Ends the writing, and removes all files that were not committed. Idempotent and thread-safe.
   */
  @Override
  public synchronized void close() {
    if (ended) {
      return;
    }
    ended = true;
    files.forEach(SafetensorsWriter::close);
    work.remove();
  }

  /** Syncs a folder despite an interrupt, since the checkpoint has its name already. */
  private static void syncFolder(Path folder) {
    Daemon.join(
        Daemon.run(
            "windlass-sync",
            () -> {
              try (FileChannel channel = FileChannel.open(folder, StandardOpenOption.READ)) {
                channel.force(true);
              } catch (IOException fault) {
                throw FileFault.writingFolder(folder, fault);
              }
            }));
  }
}
