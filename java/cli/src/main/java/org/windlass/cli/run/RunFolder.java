// SPDX-License-Identifier: Apache-2.0
package org.windlass.cli.run;

import java.io.IOException;
import java.nio.channels.FileChannel;
import java.nio.channels.FileLock;
import java.nio.charset.StandardCharsets;
import java.nio.file.DirectoryStream;
import java.nio.file.Files;
import java.nio.file.LinkOption;
import java.nio.file.NoSuchFileException;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.nio.file.attribute.PosixFilePermissions;
import java.nio.file.attribute.UserPrincipal;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import java.util.Set;
import java.util.regex.Pattern;
import org.jspecify.annotations.Nullable;
import org.windlass.error.AbortedException;

/**
 * A folder under {@code java.io.tmpdir} for small files of one run. Only their owner may read them.
 * The process of the run holds a lock on the file {@code lock} until the process ends for any
 * reason. The next run of the same user removes each folder whose lock is free. It keeps a folder
 * while a process that the earlier run started still has the folder's path in its environment.
 */
public final class RunFolder implements AutoCloseable {
  private static final Pattern NAME = Pattern.compile("windlass-run-[0-9]+");

  /** Matches the files that a run writes, except the lock. A folder with other files is kept. */
  private static final Pattern FILE = Pattern.compile("token|options|[0-9]+([.]part)?");

  private static final String LOCK = "lock";

  /**
   * Number of attempts to create a folder. Another run may treat a new folder as abandoned, and
   * remove it.
   */
  private static final int ATTEMPTS = 100;

  /**
   * Folders of this process. If a process closes any descriptor of a file, the system drops all its
   * locks on the file. So this process never opens the lock files of these folders again. Guarded
   * by the class.
   */
  private static final Set<Path> OWN = new HashSet<>();

  /** Path of the folder; null before it is needed. The class guards this field and those below. */
  private @Nullable Path path;

  private @Nullable FileChannel lock;
  private boolean isClosed;

  /**
   * Returns the path of a file in the folder. The first call creates the folder, and removes the
   * folders of killed runs.
   *
   * @throws AbortedException if this is closed
   */
  public Path resolve(String name) throws IOException {
    synchronized (RunFolder.class) {
      if (isClosed) {
        throw new AbortedException("the folder of this run is closed");
      }
      for (int attempt = 0; path == null; attempt++) {
        if (attempt == ATTEMPTS) {
          throw new IOException("other runs keep removing this one's folder");
        }
        Path made = Files.createTempDirectory("windlass-run-");
        lock = lockNew(made.resolve(LOCK));
        if (lock != null) {
          path = made;
          OWN.add(path);
          removeAbandoned(path);
        }
      }
      return path.resolve(name);
    }
  }

  /**
   * Creates and locks a file. Returns null if another run has treated the file's folder as
   * abandoned.
   */
  private static @Nullable FileChannel lockNew(Path file) throws IOException {
    FileChannel channel =
        FileChannel.open(file, StandardOpenOption.CREATE_NEW, StandardOpenOption.WRITE);
    boolean isLocked = false;
    try {
      isLocked = channel.tryLock() != null && Files.exists(file);
    } catch (IOException noLocks) {
      // The file system has no locks. Without the lock file, no run treats the folder as abandoned.
      Files.delete(file);
      return channel;
    } finally {
      if (!isLocked) {
        channel.close();
      }
    }
    return isLocked ? channel : null;
  }

  /** Creates a file in the folder that only its owner can read, and returns the file's path. */
  Path newFile(String name) throws IOException {
    return Files.createFile(
        resolve(name),
        PosixFilePermissions.asFileAttribute(PosixFilePermissions.fromString("rw-------")));
  }

  private static void removeAbandoned(Path own) {
    try (DirectoryStream<Path> entries =
        Files.newDirectoryStream(own.getParent(), "windlass-*")) {
      UserPrincipal user = Files.getOwner(own);
      for (Path entry : entries) {
        if (!OWN.contains(entry)
            && NAME.matcher(entry.getFileName().toString()).matches()
            && Files.isDirectory(entry, LinkOption.NOFOLLOW_LINKS)) {
          removeIfAbandoned(entry, user);
        }
      }
    } catch (IOException unreadable) {
      // Ignored: the run does not depend on this cleanup.
    }
  }

  private static void removeIfAbandoned(Path folder, UserPrincipal user) {
    try {
      if (!Files.getOwner(folder, LinkOption.NOFOLLOW_LINKS).equals(user)) {
        return;
      }
      try (FileChannel channel =
              FileChannel.open(
                  folder.resolve(LOCK), StandardOpenOption.WRITE, LinkOption.NOFOLLOW_LINKS);
          FileLock held = channel.tryLock()) {
        if (held != null && !isInUse(folder)) {
          remove(folder, channel, false);
        }
      }
    } catch (IOException alreadyRemoved) {
      // The folder has no lock file, or another run removes it.
    }
  }

  /** Returns true if the folder's path is in the environment of a running process. */
  private static boolean isInUse(Path folder) {
    return ProcessHandle.allProcesses().anyMatch(process -> isNamed(folder, process.pid()));
  }

  private static boolean isNamed(Path folder, long pid) {
    try {
      Path variables = Path.of("/proc", "" + pid, "environ");
      return Files.readString(variables, StandardCharsets.ISO_8859_1)
          .contains(new String(folder.toString().getBytes(), StandardCharsets.ISO_8859_1) + "/");
    } catch (IOException anothersOrGone) {
      return false;
    }
  }

  /**
   * Removes a folder whose lock this process holds, unless it has a file that no run wrote.
   *
   * @param isOwn whether the folder is this run's, so that unfinished files of killed ranks are
   *     removed too
   */
  private static void remove(Path folder, FileChannel lock, boolean isOwn) throws IOException {
    List<Path> files = new ArrayList<>();
    try (DirectoryStream<Path> entries = Files.newDirectoryStream(folder)) {
      for (Path entry : entries) {
        String name = entry.getFileName().toString();
        if (!name.equals(LOCK)) {
          if (!isOwn && !FILE.matcher(name).matches()) {
            return;
          }
          files.add(entry);
        }
      }
    }
    for (Path file : files) {
      Files.deleteIfExists(file);
    }
    Files.deleteIfExists(folder.resolve(LOCK));
    // On NFS, a deleted file stays until it is closed, and so does its folder.
    lock.close();
    Files.deleteIfExists(folder);
  }

  /** Removes the folder and its files. Idempotent; any thread may call it. */
  @Override
  public void close() throws IOException {
    synchronized (RunFolder.class) {
      isClosed = true;
      Path own = path;
      FileChannel held = lock;
      if (own != null && held != null && OWN.contains(own)) {
        try (held) {
          remove(own, held, true);
        } catch (NoSuchFileException gone) {
          // Another program that cleans the temporary folder has removed this folder.
        } finally {
          OWN.remove(own);
        }
      }
    }
  }
}
