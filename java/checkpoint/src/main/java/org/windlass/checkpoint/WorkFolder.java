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
import java.util.HexFormat;
import java.util.Optional;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ThreadLocalRandom;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.windlass.error.InvalidArgumentException;
import org.windlass.error.ResourceException;
import org.windlass.internal.Fingerprint;

/**
 * A folder that belongs to one running writer. Its file {@code lock} is locked as long as the
 * process lives, whatever ends it; a folder whose lock can be had is nobody's any more.
 */
final class WorkFolder {
  // All digits but the last eight tell which name it is for, which may be shown cut short. Older
  // versions wrote eight of them.
  private static final Pattern NAME =
      Pattern.compile("\\..*\\.windlass-([0-9]+)-([0-9a-f]{8}|[0-9a-f]{16})[0-9a-f]{8}(\\.gone)?");
  // Ends the name of a folder that is being removed, which no writer makes or takes.
  private static final String GONE = ".gone";
  private static final String LOCK = "lock";
  // A file name has at most 255 bytes, and a character of Java at most three of them.
  private static final int NAME_LIMIT = 60;
  private static final int ATTEMPTS = 100;
  // So many conflicts with writers that began at the same time are no reason to give up.
  private static final int CONFLICTS = 5;
  private static final int PAUSE_MILLIS = 20;

  // The system drops all locks of a process on a file when any of its descriptors is closed. So no
  // thread opens the lock file of a folder that this process has, or that another thread looks at.
  private static final Set<Path> OWN = ConcurrentHashMap.newKeySet();

  private final Path path;
  private final FileChannel channel;

  private WorkFolder(Path path, FileChannel channel) {
    this.path = path;
    this.channel = channel;
  }

  Path path() {
    return path;
  }

  /**
   * Makes one for the writer of {@code name}.
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

  /** Of two writers that began at the same time one comes first after a while. */
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
          // Another writer looks whether someone has it.
          pause();
          channel = lock(path.resolve(LOCK));
        }
        if (channel != null) {
          made = true;
          return new WorkFolder(path, channel);
        }
      } catch (NoSuchFileException taken) {
        // Another writer took the new folder for an abandoned one before it was locked.
      } catch (IOException fault) {
        FileTree.removeQuietly(path);
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
      // Not that of another writer: the folder itself is gone, or makes no folders, as /proc.
      throw FileFault.writingFolder(folder, nowhere);
    }
  }

  private static String digits(String name) {
    return HexFormat.of().toHexDigits(new Fingerprint().add(name).value());
  }

  /** The process of another live writer of the same name. */
  private Optional<String> rival(Path folder, String name) {
    try (DirectoryStream<Path> entries = Files.newDirectoryStream(folder, ".*.windlass-*")) {
      for (Path entry : entries) {
        Matcher matcher = NAME.matcher(entry.getFileName().toString());
        if (!entry.equals(path)
            && matcher.matches()
            && matcher.group(3) == null
            && matcher.group(2).equals(digits(name))
            && isHeld(entry)) {
          return Optional.of(matcher.group(1));
        }
      }
    } catch (IOException | DirectoryIteratorException unreadable) {
      // Whoever cannot list the folder finds the other at the commit.
    }
    return Optional.empty();
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

  /** Locks the file, making it if need be; null if someone holds it or it was removed meanwhile. */
  private static FileChannel lock(Path path) throws IOException {
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

  /** Removes the work folders in {@code folder} whose writers are gone. */
  static void removeAbandoned(Path folder) {
    try (DirectoryStream<Path> entries = Files.newDirectoryStream(folder, ".*.windlass-*")) {
      for (Path entry : entries) {
        Matcher matcher = NAME.matcher(entry.getFileName().toString());
        if (!matcher.matches() || !Files.isDirectory(entry, LinkOption.NOFOLLOW_LINKS)) {
          continue;
        }
        if (matcher.group(3) != null) {
          FileTree.removeQuietly(entry);
        } else if (OWN.add(entry)) {
          removeIfAbandoned(entry);
        }
      }
    } catch (IOException | DirectoryIteratorException unreadable) {
      // Whoever cannot list the folder cannot tidy it; writing into it says why if it fails too.
    }
  }

  private static void removeIfAbandoned(Path entry) {
    try (FileChannel channel = lock(entry.resolve(LOCK))) {
      if (channel != null) {
        remove(entry, channel);
      }
    } catch (IOException | InvalidPathException othersOwn) {
      // Another user's, being removed by another writer, or of a name that the locale lacks.
    } finally {
      OWN.remove(entry);
    }
  }

  /** What a folder is called while it is being removed. */
  private static Path gone(Path path) {
    return path.resolveSibling(path.getFileName() + GONE);
  }

  /**
   * Removes a folder whose lock this process has. NFS keeps a deleted file that is open, and then its
   * folder: the lock is closed before the folder goes. The folder is renamed before that. A writer
   * that gets the lock afterwards finds no file of its name, and makes another folder.
   */
  private static void remove(Path path, FileChannel lock) throws IOException {
    Path gone = gone(path);
    try (lock) {
      Files.move(path, gone, StandardCopyOption.ATOMIC_MOVE);
      lock.close();
      FileTree.remove(gone);
    } catch (NoSuchFileException | DirectoryNotEmptyException left) {
      // Nothing is there, or what another process looks at on NFS; the next writer removes that.
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
}
