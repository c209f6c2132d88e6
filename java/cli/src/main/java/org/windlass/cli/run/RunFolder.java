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
import java.nio.file.attribute.UserPrincipal;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import java.util.Set;
import java.util.regex.Pattern;

/**
 * A folder under {@code java.io.tmpdir} with small files of one run, which only their owner may
 * read. Its file {@code lock} is locked while the process lives, whatever ends the process. The next
 * run of the same user removes a folder whose lock is free, unless a process that the run has started
 * still names the folder in its environment.
 */
public final class RunFolder implements AutoCloseable {
  private static final Pattern NAME = Pattern.compile("windlass-(ranks|token|options)-[0-9]+");

  /** The files that runs make beside the lock. A folder that holds others is left alone. */
  private static final Pattern FILE = Pattern.compile("token|options|[0-9]+([.]part)?");

  private static final String LOCK = "lock";

  /** Other runs that begin now may take a new folder for an abandoned one so often. */
  private static final int ATTEMPTS = 100;

  /**
   * Folders of this process. The system drops all locks of a process on a file when the process
   * closes any descriptor of the file, so nobody here opens their locks. Guarded by the class.
   */
  private static final Set<Path> OWN = new HashSet<>();

  private final Path path;
  private final FileChannel lock;

  private RunFolder(Path path, FileChannel lock) {
    this.path = path;
    this.lock = lock;
  }

  /**
   * Makes a folder, and removes those that killed runs left.
   *
   * @param kind {@code ranks}, {@code token} or {@code options}
   */
  public static RunFolder create(String kind) throws IOException {
    synchronized (RunFolder.class) {
      for (int attempt = 0; attempt < ATTEMPTS; attempt++) {
        Path path = Files.createTempDirectory("windlass-" + kind + "-");
        FileChannel channel = lockNew(path.resolve(LOCK));
        if (channel != null) {
          OWN.add(path);
          removeAbandoned(path);
          return new RunFolder(path, channel);
        }
      }
    }
    throw new IOException("other runs keep removing this one's folder");
  }

  /** Makes and locks a file; null if another run took its folder for an abandoned one. */
  private static FileChannel lockNew(Path file) throws IOException {
    FileChannel channel =
        FileChannel.open(file, StandardOpenOption.CREATE_NEW, StandardOpenOption.WRITE);
    boolean isLocked = false;
    try {
      isLocked = channel.tryLock() != null && Files.exists(file);
    } catch (IOException noLocks) {
      // The file system has none. Without the file, nobody takes the folder for an abandoned one.
      Files.delete(file);
      return channel;
    } finally {
      if (!isLocked) {
        channel.close();
      }
    }
    return isLocked ? channel : null;
  }

  /** The path of one of its files, which is named {@code token}, {@code options} or by a number. */
  public Path resolve(String name) {
    return path.resolve(name);
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
      // Tidying is no part of the run, which goes on.
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
      // It has no lock, or another run removes it.
    }
  }

  /** Whether a process has it in its environment, as ranks that outlive {@code windlass run}. */
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
   * Removes a folder whose lock this process has, unless it holds a file that no run made.
   *
   * @param isOwn whether all in it is this run's, also what a rank that was killed had half written
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
    // NFS keeps a deleted file that is open, and then its folder.
    lock.close();
    Files.deleteIfExists(folder);
  }

  /** Removes the folder and its files. Idempotent; any thread. */
  @Override
  public void close() throws IOException {
    synchronized (RunFolder.class) {
      if (OWN.contains(path)) {
        try (lock) {
          remove(path, lock, true);
        } catch (NoSuchFileException gone) {
          // Whoever tidies the temporary folder has removed it.
        } finally {
          OWN.remove(path);
        }
      }
    }
  }
}
