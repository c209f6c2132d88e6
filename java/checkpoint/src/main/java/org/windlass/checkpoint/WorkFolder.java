// SPDX-License-Identifier: Apache-2.0
package org.windlass.checkpoint;

import java.io.IOException;
import java.nio.channels.FileChannel;
import java.nio.channels.FileLock;
import java.nio.channels.OverlappingFileLockException;
import java.nio.file.DirectoryIteratorException;
import java.nio.file.DirectoryNotEmptyException;
import java.nio.file.DirectoryStream;
import java.nio.file.Files;
import java.nio.file.InvalidPathException;
import java.nio.file.LinkOption;
import java.nio.file.NoSuchFileException;
import java.nio.file.Path;
import java.nio.file.StandardCopyOption;
import java.nio.file.StandardOpenOption;
import java.util.ArrayList;
import java.util.HexFormat;
import java.util.List;
import java.util.Optional;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ThreadLocalRandom;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.jspecify.annotations.Nullable;
import org.windlass.error.InvalidArgumentException;
import org.windlass.error.ResourceException;
import org.windlass.internal.Fingerprint;

/**
 * A folder that belongs to one running writer. The writer's process holds a lock on the file {@code
 * lock} in it. When the process has ended for any reason, the lock is free, and the folder counts
 * as abandoned.
 */
record WorkFolder(Path path, FileChannel channel) {
  // All digits except the last eight identify the name for which the folder was made, since the
  // readable part may be cut off. Older versions wrote only eight such digits.
  private static final Pattern NAME =
      Pattern.compile("\\..*\\.windlass-([0-9]+)-([0-9a-f]{8}|[0-9a-f]{16})[0-9a-f]{8}(\\.gone)?");
  // Suffix of a folder that is being removed. No writer creates or uses a folder with it.
  private static final String GONE = ".gone";
  private static final String LOCK = "lock";
  // A file name has at most 255 bytes, and a Java char at most three of them.
  private static final int NAME_LIMIT = 60;
  private static final int ATTEMPTS = 100;
  // Number of times that the writer tries again after a conflict with a writer that began at the
  // same time.
  private static final int CONFLICTS = 5;
  private static final int PAUSE_MILLIS = 20;

  // The system drops all locks of a process on a file when any of its descriptors is closed. So a
  // thread does not open the lock file of a folder that this process owns or that another thread
  // checks.
  private static final Set<Path> OWN = ConcurrentHashMap.newKeySet();

  /**
   * Creates a work folder for the writer of {@code name}.
   *
   * @throws InvalidArgumentException if another writer of that name has one
   */
  static WorkFolder create(Path folder, String name) {
    for (int attempt = 0; ; attempt++) {
      WorkFolder made = make(folder, name);
      Optional<String> rival = made.rival(folder, name);
      if (rival.isEmpty()) {
        return made;
      }
      made.remove();
      if (attempt == CONFLICTS) {
        throw new InvalidArgumentException(
            folder.resolve(name) + ": process " + rival.get() + " is writing it");
      }
      pause();
    }
  }

  /** Sleeps for a random time, so that two writers that collided do not collide again. */
  private static void pause() {
    try {
      Thread.sleep(1 + ThreadLocalRandom.current().nextInt(PAUSE_MILLIS));
    } catch (InterruptedException interrupted) {
      Thread.currentThread().interrupt();
    }
  }

  private static WorkFolder make(Path folder, String name) {
    String shown = name.length() <= NAME_LIMIT ? name : name.substring(0, NAME_LIMIT);
    for (int attempt = 0; attempt < ATTEMPTS; attempt++) {
      String nonce = HexFormat.of().toHexDigits(ThreadLocalRandom.current().nextInt());
      Path path =
          folder.resolve(
              "." + shown + ".windlass-" + ProcessHandle.current().pid() + "-" + digits(name)
                  + nonce);
      OWN.add(path);
      boolean made = false;
      try {
        makeFolder(folder, path);
        FileChannel channel = lock(path.resolve(LOCK));
        for (int look = 0; channel == null && look < CONFLICTS; look++) {
          // Another writer is checking whether the lock is held.
          pause();
          channel = lock(path.resolve(LOCK));
        }
        if (channel != null) {
          made = true;
          return new WorkFolder(path, channel);
        }
      } catch (NoSuchFileException taken) {
        // Before the new folder was locked, another writer treated it as abandoned and removed it.
      } catch (IOException fault) {
        removeTreeQuietly(path);
        throw FileFault.writingFolder(folder, fault);
      } finally {
        if (!made) {
          OWN.remove(path);
        }
      }
    }
    throw new ResourceException(folder + ": other writers keep removing this one's work folder");
  }

  private static void makeFolder(Path folder, Path path) throws IOException {
    try {
      Files.createDirectory(path);
    } catch (NoSuchFileException nowhere) {
      // The missing folder was not removed by another writer. Its parent is gone, or allows no
      // folders, as in /proc.
      throw FileFault.writingFolder(folder, nowhere);
    }
  }

  private static String digits(String name) {
    return HexFormat.of().toHexDigits(new Fingerprint().add(name).value());
  }

  /** Returns the process id of another running writer of the same name; empty if none. */
  private Optional<String> rival(Path folder, String name) {
    for (Path entry : all(folder)) {
      Matcher matcher = NAME.matcher(entry.getFileName().toString());
      if (!entry.equals(path)
          && matcher.matches()
          && matcher.group(3) == null
          && matcher.group(2).equals(digits(name))
          && isHeld(entry)) {
        return Optional.of(matcher.group(1));
      }
    }
    return Optional.empty();
  }

  /**
   * Returns the entries whose names are those of work folders. For an unreadable folder, returns
   * none: its work folders can't be removed anyway, the commit finds another writer, and the first
   * write reports the reason.
   */
  private static List<Path> all(Path folder) {
    try (DirectoryStream<Path> entries = Files.newDirectoryStream(folder, ".*.windlass-*")) {
      List<Path> found = new ArrayList<>();
      entries.forEach(found::add);
      return found;
    } catch (IOException | DirectoryIteratorException unreadable) {
      return List.of();
    }
  }

  private static boolean isHeld(Path entry) {
    if (!OWN.add(entry)) {
      return true;
    }
    try (FileChannel channel = FileChannel.open(entry.resolve(LOCK), StandardOpenOption.WRITE);
        FileLock lock = channel.tryLock()) {
      return lock == null;
    } catch (OverlappingFileLockException ours) {
      return true;
    } catch (IOException over) {
      return false;
    } finally {
      OWN.remove(entry);
    }
  }

  /** Locks the file. Returns null if another process holds the lock, or has removed the file. */
  private static @Nullable FileChannel lock(Path path) throws IOException {
    FileChannel channel =
        FileChannel.open(path, StandardOpenOption.CREATE, StandardOpenOption.WRITE);
    boolean locked = false;
    try {
      FileLock lock = channel.tryLock();
      locked = lock != null && Files.exists(path);
    } catch (OverlappingFileLockException ours) {
      locked = false;
    } finally {
      if (!locked) {
        channel.close();
      }
    }
    return locked ? channel : null;
  }

  static void removeAbandoned(Path folder) {
    for (Path entry : all(folder)) {
      Matcher matcher = NAME.matcher(entry.getFileName().toString());
      if (!matcher.matches() || !Files.isDirectory(entry, LinkOption.NOFOLLOW_LINKS)) {
        continue;
      }
      if (matcher.group(3) != null) {
        removeTreeQuietly(entry);
      } else if (OWN.add(entry)) {
        removeIfAbandoned(entry);
      }
    }
  }

  private static void removeIfAbandoned(Path entry) {
    try (FileChannel channel = lock(entry.resolve(LOCK))) {
      if (channel != null) {
        remove(entry, channel);
      }
    } catch (IOException | InvalidPathException othersOwn) {
      // The folder belongs to another user, is being removed by another writer, or has a name that
      // the locale lacks.
    } finally {
      OWN.remove(entry);
    }
  }

  private static Path gone(Path path) {
    return path.resolveSibling(path.getFileName() + GONE);
  }

  /**
   * Removes a folder whose lock this process holds.
   *
   * <p>The method renames the folder first. A writer that gets the lock afterwards finds no file of
   * its name, and creates another folder. The lock is closed before the folder is removed: NFS
   * keeps a deleted file, and its folder, while the file is open.
   */
  private static void remove(Path path, FileChannel lock) throws IOException {
    Path gone = gone(path);
    try (lock) {
      Files.move(path, gone, StandardCopyOption.ATOMIC_MOVE);
      lock.close();
      removeTree(gone);
    } catch (NoSuchFileException | DirectoryNotEmptyException left) {
      // The folder is gone, or on NFS another process has a file of it open. The next writer
      // removes it.
    }
  }

  void remove() {
    try {
      remove(path, channel);
    } catch (IOException fault) {
      Path gone = gone(path);
      throw FileFault.writingFolder(Files.exists(gone) ? gone : path, fault);
    } finally {
      OWN.remove(path);
    }
  }

  private static void removeTreeQuietly(Path root) {
    try {
      removeTree(root);
    } catch (IOException | InvalidPathException left) {
      // The next writer in this folder tries again.
    }
  }

  /**
   * Removes a file or a folder with its content, even while other processes do the same. Links are
   * not followed. Holds at most one file descriptor.
   */
  static void removeTree(Path root) throws IOException {
    if (Files.isDirectory(root, LinkOption.NOFOLLOW_LINKS)) {
      for (Path entry : entries(root)) {
        removeTree(entry);
      }
    }
    Files.deleteIfExists(root);
  }

  /** Returns the entries of a folder, or none if another process has removed it. */
  private static List<Path> entries(Path folder) throws IOException {
    List<Path> entries = new ArrayList<>();
    // The paths of a directory stream keep the bytes of names for which the locale has no
    // characters.
    try (DirectoryStream<Path> listed = Files.newDirectoryStream(folder)) {
      listed.forEach(entries::add);
    } catch (NoSuchFileException gone) {
      entries.clear();
    } catch (DirectoryIteratorException fault) {
      throw fault.getCause();
    }
    return entries;
  }
}
