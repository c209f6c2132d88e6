// SPDX-License-Identifier: Apache-2.0
package org.windlass.internal.rendezvous;

import java.io.IOException;
import java.io.InputStream;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.nio.channels.FileChannel;
import java.nio.channels.OverlappingFileLockException;
import java.nio.charset.StandardCharsets;
import java.nio.file.FileAlreadyExistsException;
import java.nio.file.Files;
import java.nio.file.InvalidPathException;
import java.nio.file.LinkOption;
import java.nio.file.NoSuchFileException;
import java.nio.file.Path;
import java.nio.file.StandardCopyOption;
import java.nio.file.StandardOpenOption;
import java.nio.file.attribute.FileAttribute;
import java.nio.file.attribute.PosixFilePermissions;
import java.time.Duration;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.Properties;
import java.util.Set;
import java.util.UUID;
import java.util.function.Supplier;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.jspecify.annotations.Nullable;
import org.windlass.error.DeadlineExceededException;
import org.windlass.error.ResourceException;
import org.windlass.internal.Deadline;
import org.windlass.internal.ProcessName;
import org.windlass.internal.store.HostAndPort;
import org.windlass.internal.store.Token;
import org.windlass.internal.store.Waits;

/**
 * File with the address and the token of a store, for processes whose settings do not contain them.
 * The process that opens the store writes the file, in a folder that only its user can enter.
 *
 * <p>The file's name contains the id of the host's boot, the PID namespace, and the name of the job
 * or of the rendezvous between jobs. Processes on other hosts and in other containers thus use
 * other files, even in a shared folder. A file is ignored and replaced in three cases: its writer
 * has ended, other users can access it, or it can't be read.
 */
public final class RendezvousFile implements AutoCloseable {
  public static final String FOLDER_VARIABLE = "XDG_RUNTIME_DIR";

  private static final long LONGEST_PAUSE_MS = 32;
  private static final long LOCK_PAUSE_MS = 5;
  private static final int LONGEST_TEXT = 512;
  private static final Pattern TEXT =
      Pattern.compile(
          "windlass rendezvous 2\n" + "store ([0-9a-f.:]{2,45}) ([0-9]{1,5})\n"
              + "token ([0-9a-f]{64})\n" + "process ([0-9]{1,9}) ([0-9]{1,18})\n");

  private static final String CURE =
      ", but ranks that have neither address nor token join by a file in it, which only its user"
          + " may access; set " + FOLDER_VARIABLE + " to a folder of mode 700 for all of them, or"
          + " set an address and a token, by ";

  /**
   * Prefix of a system property that is set while a thread of this process has a lock file open.
   * The kernel drops a process's lock as soon as any thread closes the file, so only one thread may
   * open it. Copies of this class in other class loaders can see the system properties, but not
   * each other's fields.
   */
  private static final String OPEN_LOCK = "windlass.open-lock.";

  private static final String PRIVATE_FILE = "rw-------";
  private static final String PRIVATE_FOLDER = "rwx------";

  // File types and permissions in a mode, as the kernel numbers them.
  private static final int FOLDER = 0040000;
  private static final int FILE = 0100000;
  private static final int TYPE = 0170000;
  private static final int OTHER_USERS = 0077;

  private static final Path STATUS = Path.of("/proc/self/status");

  private final Path path;
  private final ProcessName process;
  private @Nullable String written; // by this object; null for nothing

  // Results of the last reading of the file.
  private @Nullable String problem; // null if it names the store of a running process
  private int writer; // PID of that process

  public record Place(InetSocketAddress address, Token token) {}

  /**
   * Finds the file.
   *
   * @param what a text that identifies the job, or the rendezvous of jobs, on this host
   * @param variable name of the variable that can give an address instead, for messages
   * @param environment names the folder. If that is missing, or open to others, the folder is
   *     {@code windlass-UID} under {@code java.io.tmpdir}, which is created.
   */
  public static RendezvousFile of(
      String what, String variable, Map<String, String> environment) {
    String named = environment.getOrDefault(FOLDER_VARIABLE, "");
    return of(what, variable, named, Path.of(System.getProperty("java.io.tmpdir")));
  }

  static RendezvousFile of(String what, String variable, String named, Path temporary) {
    ProcessName process = ProcessName.own();
    Path folder = folder(named, temporary, CURE + variable + " and WINDLASS_TOKEN_FILE");
    String host = Arrival.ownHost();
    String name = String.join("\n", host, "" + process.pidNamespace(), what);
    UUID unique = UUID.nameUUIDFromBytes(name.getBytes(StandardCharsets.UTF_8));
    return new RendezvousFile(folder.resolve("windlass-rendezvous-" + unique), process);
  }

  private RendezvousFile(Path path, ProcessName process) {
    this.path = path;
    this.process = process;
  }

  Path path() {
    return path;
  }

  /**
   * Writes the file. {@link #close} removes it. Throws Resource if another process has written it
   * and still runs.
   */
  public void write(Place place) {
    if (read() != null) {
      throw new ResourceException(
          "process " + writer + " already starts a job of this name, according to "
              + path + "; give each job a name of its own by WINDLASS_JOB");
    }
    put(place);
  }

  /**
   * Returns the store that a running process has written to the file. If there is none, calls
   * {@code open}, and writes the resulting store to the file; {@link #close} then removes the file.
   *
   * @param deadline limit for waiting for another process that does the same
   */
  public Place findOr(Supplier<Place> open, Duration deadline) {
    Deadline until = Deadline.of(deadline);
    Path lock = path.resolveSibling(path.getFileName() + ".lock");
    Properties shared = System.getProperties();
    try {
      String name = OPEN_LOCK + Objects.requireNonNull(lock.getParent()).toRealPath().resolve(lock.getFileName());
      while (shared.putIfAbsent(name, "") != null) {
        pause(lock, "another thread", until);
      }
      Set<StandardOpenOption> options = Set.of(StandardOpenOption.CREATE, StandardOpenOption.WRITE);
      try (FileChannel channel = FileChannel.open(lock, options, mode(PRIVATE_FILE))) {
        while (channel.tryLock() == null) {
          pause(lock, "another process", until);
        }
        Place place = read();
        if (place == null) {
          place = open.get();
          put(place);
        }
        return place;
      } finally {
        shared.remove(name);
      }
    } catch (IOException | UnsupportedOperationException | OverlappingFileLockException e) {
      throw new ResourceException(lock + ": can't be locked: " + e, e);
    }
  }

  private static void pause(Path lock, String holder, Deadline until) {
    if (until.isOver()) {
      throw new DeadlineExceededException(
          lock + ": " + holder + " has held it for " + Deadline.text(until.deadline()));
    }
    Waits.pause("lock " + lock, LOCK_PAUSE_MS);
  }

  private void put(Place place) {
    String text =
        "windlass rendezvous 2\n" + "store " + place.address().getAddress().getHostAddress()
            + " " + place.address().getPort() + "\ntoken " + place.token().digits()
            + "\nprocess " + process.pid() + " " + process.started() + "\n";
    Path draft = path.resolveSibling(path.getFileName() + "." + UUID.randomUUID());
    try {
      try {
        Files.createFile(draft, mode(PRIVATE_FILE));
        Files.writeString(draft, text, StandardOpenOption.WRITE);
        Files.move(draft, path, StandardCopyOption.ATOMIC_MOVE);
        written = text;
      } finally {
        Files.deleteIfExists(draft);
      }
    } catch (IOException | UnsupportedOperationException e) {
      throw new ResourceException(path + ": the rendezvous can't be written: " + e, e);
    }
  }

  /** Waits until rank 0's process has written the file. */
  public Place await(Duration deadline) {
    Deadline until = Deadline.of(deadline);
    while (true) {
      Place place = read();
      if (place != null) {
        return place;
      }
      if (until.isOver()) {
        throw new DeadlineExceededException(
            "rank 0 has not announced the rendezvous within " + Deadline.text(deadline) + ": "
                + path + " " + problem
                + "; see why rank 0 did not start, or give more time. Where it lives on another"
                + " host or in another container, or runs as another user, set"
                + " WINDLASS_RENDEZVOUS and WINDLASS_TOKEN_FILE on all ranks",
            List.of(0));
      }
      long waitedMs = (System.nanoTime() - until.startNs()) / 1_000_000;
      Waits.pause("await " + path, Math.max(1, Math.min(waitedMs / 8, LONGEST_PAUSE_MS)));
    }
  }

  /** Removes the file if this object has written it. Idempotent. */
  @Override
  public void close() {
    try {
      if (written != null && written.equals(text())) {
        Files.delete(path);
      }
    } catch (IOException e) {
      // The file is already gone, or is ignored once this process has ended.
    }
    written = null;
  }

  private @Nullable Place read() {
    try {
      problem = problem(path, FILE);
      if (problem != null) {
        return null;
      }
      Matcher text = TEXT.matcher(text());
      int port = text.matches() ? Integer.parseInt(text.group(2)) : 0;
      if (port < 1 || port > HostAndPort.LAST_PORT) {
        problem = "has no content that this version of Windlass can read";
        return null;
      }
      writer = Integer.parseInt(text.group(4));
      long started = Long.parseLong(text.group(5));
      if (!new ProcessName(writer, started, process.pidNamespace()).lives()) {
        problem = "was left behind by process " + writer + ", which has ended";
        return null;
      }
      InetAddress host = InetAddress.getByName(text.group(1));
      Token token = Token.parse(text.group(3), path.toString());
      return new Place(new InetSocketAddress(host, port), token);
    } catch (NoSuchFileException e) {
      problem = "is not there";
    } catch (IOException e) {
      problem = "can't be read: " + e;
    }
    return null;
  }

  private String text() throws IOException {
    try (InputStream in = Files.newInputStream(path, LinkOption.NOFOLLOW_LINKS)) {
      return new String(in.readNBytes(LONGEST_TEXT), StandardCharsets.US_ASCII);
    }
  }

  private static Path folder(String named, Path temporary, String cure) {
    if (isPrivateFolder(named)) {
      return Path.of(named);
    }
    Path own = temporary;
    try {
      own = temporary.resolve("windlass-" + Integer.toUnsignedString(user()));
      try {
        Files.createDirectory(own, mode(PRIVATE_FOLDER));
      } catch (FileAlreadyExistsException e) {
        // Another process of this user, or another user, has made it.
      }
      String problem = problem(own, FOLDER);
      if (problem == null) {
        return own;
      }
      throw new ResourceException(own + " " + problem + cure);
    } catch (IOException | UnsupportedOperationException e) {
      throw new ResourceException(own + " can't be made or read: " + e + cure, e);
    }
  }

  private static FileAttribute<?> mode(String permissions) {
    return PosixFilePermissions.asFileAttribute(PosixFilePermissions.fromString(permissions));
  }

  private static boolean isPrivateFolder(String folder) {
    try {
      return Path.of(folder).isAbsolute() && problem(Path.of(folder), FOLDER) == null;
    } catch (IOException | InvalidPathException e) {
      return false;
    }
  }

  /** Returns the user id that owns the files which this process creates. */
  private static int user() throws IOException {
    for (String line : Files.readAllLines(STATUS)) {
      if (line.startsWith("Uid:")) {
        return Integer.parseUnsignedInt(line.split("\\s+")[4]);
      }
    }
    throw new IOException(STATUS + " names no user");
  }

  /** Returns why {@code path} is not a private file or folder of this user; null if it is one. */
  private static @Nullable String problem(Path path, int type) throws IOException {
    Map<String, Object> found =
        Files.readAttributes(path, "unix:mode,uid", LinkOption.NOFOLLOW_LINKS);
    int mode = (Integer) Objects.requireNonNull(found.get("mode"));
    int owner = (Integer) Objects.requireNonNull(found.get("uid"));
    if ((mode & TYPE) != type) {
      return "is not a " + (type == FOLDER ? "folder" : "file") + ", or is a link";
    }
    if (owner != user()) {
      return "belongs to user " + Integer.toUnsignedString(owner);
    }
    return (mode & OTHER_USERS) == 0 ? null : "is accessible to other users than its owner";
  }
}
