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
import java.util.Properties;
import java.util.Set;
import java.util.UUID;
import java.util.function.Supplier;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.windlass.internal.Deadline;
import org.windlass.internal.FailureMaker;
import org.windlass.internal.Native;
import org.windlass.internal.ProcessName;
import org.windlass.internal.store.Token;
import org.windlass.internal.store.Waits;

/**
 * The file by which those meet who were given neither an address nor a token: whoever opens the
 * store writes both into it, and the others look for it. It lies in a folder that none but its user
 * can enter, so that those who meet by it run as one user.
 *
 * <p>Its name is made of the host's boot, the pid namespace and what they meet for; those of other
 * hosts, containers and jobs look for others, even where they share the folder. It is there as long
 * as they are to come. What a process that was killed left behind is known by that process's start,
 * counts as absent, and is replaced; so is what isn't its user's alone, or can't be read.
 */
public final class MeetingFile implements AutoCloseable {
  /** The environment variable that names a folder of its user's, until the last logout. */
  public static final String FOLDER_VARIABLE = "XDG_RUNTIME_DIR";

  private static final long FIRST_PAUSE_MS = 1;
  private static final long LONGEST_PAUSE_MS = 32;

  /** Bytes of a file, at most. */
  private static final int LONGEST = 512;

  private static final Pattern TEXT =
      Pattern.compile(
          "windlass meeting 1\n"
              + "store ([0-9a-f.:]{2,45}) ([0-9]{1,5})\n"
              + "token ([0-9a-f]{64})\n"
              + "process ([0-9]{1,9}) ([0-9]{1,18})\n");

  private static final int LAST_PORT = 65_535;

  private static final String CURE =
      ", and those who have neither address nor token meet by a file in it, which only its user"
          + " may reach; set " + FOLDER_VARIABLE + " to a folder of mode 700 for all of them, or"
          + " name an address and a token, by ";

  private static final Duration LOCK_PAUSE = Duration.ofMillis(5);

  /**
   * Of the system properties that name the lock files, by the real path of their folder, which a
   * thread of this process has open: the system drops a process's lock on a file as soon as any of
   * its threads closes that. Class loaders share the properties, and nothing else that this package
   * has.
   */
  private static final String OPEN_LOCK = "windlass.open-lock.";

  private final Path path;
  private final ProcessName process;
  private final FailureMaker failures;

  /** What this wrote; null for nothing. */
  private String written;

  /** Where a job's store is, and what it asks for. */
  public record Place(InetSocketAddress address, Token token) {}

  /**
   * Of a job.
   *
   * @param job what tells it from others on this host
   * @param environment says which folder, if it is such a one; else it is {@code windlass-UID}
   *     under {@code java.io.tmpdir}, made here where there is none
   * @param failures makes what this and all calls throw. Here: Resource where there is no folder
   *     that others can't enter
   */
  public static MeetingFile of(
      String job, Map<String, String> environment, FailureMaker failures) {
    return of(job, "WINDLASS_RENDEZVOUS and WINDLASS_TOKEN_FILE", environment, failures);
  }

  /**
   * Of jobs that meet, whichever of them has the store.
   *
   * @param name what they call their meeting
   */
  public static MeetingFile ofJobs(
      String name, Map<String, String> environment, FailureMaker failures) {
    return of("jobs\n" + name, "WINDLASS_MEETING and WINDLASS_TOKEN_FILE", environment, failures);
  }

  private static MeetingFile of(
      String what, String settings, Map<String, String> environment, FailureMaker failures) {
    Path temporary = Path.of(System.getProperty("java.io.tmpdir"));
    String named = environment.getOrDefault(FOLDER_VARIABLE, "");
    return of(what, settings, named, temporary, failures);
  }

  /** Of a job, in {@code named} if that is such a folder, else in one under {@code temporary}. */
  static MeetingFile of(
      String job, String settings, String named, Path temporary, FailureMaker failures) {
    ProcessName process = ProcessName.own(failures);
    Path folder = folder(named, temporary, CURE + settings, failures);
    String host = Arrival.ownHost(failures);
    String name = String.join("\n", host, "" + process.pidNamespace(), job);
    UUID unique = UUID.nameUUIDFromBytes(name.getBytes(StandardCharsets.UTF_8));
    return new MeetingFile(folder.resolve("windlass-meeting-" + unique), process, failures);
  }

  private MeetingFile(Path path, ProcessName process, FailureMaker failures) {
    this.path = path;
    this.process = process;
    this.failures = failures;
  }

  Path path() {
    return path;
  }

  /**
   * Tells the others where the store is, until {@link #close}. Resource where a process that lives
   * says so already, or where it can't be written.
   */
  public void write(Place place) {
    Seen seen = look();
    if (seen.place() != null) {
      throw failures.make(
          Native.WL_RESOURCE,
          "process "
              + seen.pid()
              + " starts a job of this name already, and says so in "
              + path
              + "; give each job a name of its own by WINDLASS_JOB");
    }
    put(place);
  }

  /**
   * Where the store is that a process which lives has told of; where none has, what {@code open}
   * makes, which the others are told of until {@link #close}.
   *
   * @param deadline to wait for another that does the same; Timeout
   */
  public Place findOr(Supplier<Place> open, Duration deadline) {
    Deadline until = Deadline.of(deadline, failures);
    Path lock = path.resolveSibling(path.getFileName() + ".lock");
    Properties shared = System.getProperties();
    try {
      String name = OPEN_LOCK + lock.getParent().toRealPath().resolve(lock.getFileName());
      while (shared.putIfAbsent(name, "") != null) {
        pause(lock, "another thread", until);
      }
      try {
        return findOr(open, lock, until);
      } finally {
        shared.remove(name);
      }
    } catch (IOException | UnsupportedOperationException | OverlappingFileLockException e) {
      throw failures.make(
          Native.WL_RESOURCE, lock + ": can't be locked: " + e, e, "", List.of());
    } catch (InterruptedException e) {
      throw Waits.interrupted("lock " + lock, failures);
    }
  }

  private Place findOr(Supplier<Place> open, Path lock, Deadline until)
      throws IOException, InterruptedException {
    Set<StandardOpenOption> options =
        Set.of(StandardOpenOption.CREATE, StandardOpenOption.WRITE);
    try (FileChannel channel = FileChannel.open(lock, options, only("rw-------"))) {
      while (channel.tryLock() == null) {
        pause(lock, "another process", until);
      }
      Place place = look().place();
      if (place == null) {
        place = open.get();
        put(place);
      }
      return place;
    }
  }

  /** Before the next attempt to get {@code lock}; Timeout where there is to be none. */
  private void pause(Path lock, String holder, Deadline until) throws InterruptedException {
    if (until.isOver()) {
      throw failures.make(
          Native.WL_TIMEOUT,
          lock + ": " + holder + " has held it for " + Deadline.text(until.deadline()));
    }
    Thread.sleep(LOCK_PAUSE.toMillis());
  }

  private void put(Place place) {
    String text =
        "windlass meeting 1\nstore "
            + place.address().getAddress().getHostAddress()
            + " "
            + place.address().getPort()
            + "\ntoken "
            + place.token().digits()
            + "\nprocess "
            + process.pid()
            + " "
            + process.started()
            + "\n";
    Path draft = path.resolveSibling(path.getFileName() + "." + UUID.randomUUID());
    try {
      try {
        Files.createFile(draft, only("rw-------"));
        Files.writeString(draft, text, StandardOpenOption.WRITE);
        Files.move(draft, path, StandardCopyOption.ATOMIC_MOVE);
        written = text;
      } finally {
        Files.deleteIfExists(draft);
      }
    } catch (IOException | UnsupportedOperationException e) {
      throw failures.make(
          Native.WL_RESOURCE,
          path + ": where the ranks meet can't be written: " + e,
          e,
          "",
          List.of());
    }
  }

  /** Waits until rank 0's process has said where the store is; Timeout where it has not. */
  public Place await(Duration deadline) {
    Deadline until = Deadline.of(deadline, failures);
    long pause = FIRST_PAUSE_MS;
    while (true) {
      Seen seen = look();
      if (seen.place() != null) {
        return seen.place();
      }
      if (until.isOver()) {
        throw failures.make(
            Native.WL_TIMEOUT,
            "rank 0 has not said where the ranks meet within "
                + Deadline.text(deadline)
                + ": "
                + path
                + " "
                + seen.lack()
                + "; see why rank 0 did not start, or give more time. Where it lives on another"
                + " host or in another container, or runs as another user, set"
                + " WINDLASS_RENDEZVOUS and WINDLASS_TOKEN_FILE on all ranks",
            null,
            "",
            List.of(0));
      }
      try {
        Thread.sleep(pause);
      } catch (InterruptedException e) {
        throw Waits.interrupted("await " + path, failures);
      }
      pause = Math.min(2 * pause, LONGEST_PAUSE_MS);
    }
  }

  /** Removes what this has written, so that none finds it who comes from now on. */
  @Override
  public void close() {
    if (written == null) {
      return;
    }
    try {
      if (written.equals(text())) {
        Files.delete(path);
      }
    } catch (IOException e) {
      // It is gone; or it counts as absent once this process has ended.
    }
    written = null;
  }

  /**
   * A look at the file.
   *
   * @param place null where it tells of none that there is
   * @param pid of the process that wrote it
   * @param lack what it is instead, after its name; null with a place
   */
  private record Seen(Place place, int pid, String lack) {
    static Seen lack(String what) {
      return new Seen(null, 0, what);
    }
  }

  private Seen look() {
    try {
      String wrong = Guarded.objection(path, Guarded.FILE);
      if (wrong != null) {
        return Seen.lack(wrong);
      }
      Matcher text = TEXT.matcher(text());
      int port = text.matches() ? Integer.parseInt(text.group(2)) : 0;
      if (port < 1 || port > LAST_PORT) {
        return Seen.lack("says nothing that this version of Windlass can read");
      }
      ProcessName writer =
          new ProcessName(
              Integer.parseInt(text.group(4)),
              Long.parseLong(text.group(5)),
              process.pidNamespace());
      if (!writer.lives()) {
        return Seen.lack("was left behind by process " + writer.pid() + ", which has ended");
      }
      InetAddress host = InetAddress.getByName(text.group(1));
      Token token = Token.parse(text.group(3), path.toString(), failures);
      return new Seen(new Place(new InetSocketAddress(host, port), token), writer.pid(), null);
    } catch (NoSuchFileException e) {
      return Seen.lack("is not there");
    } catch (IOException e) {
      return Seen.lack("can't be read: " + e);
    }
  }

  private String text() throws IOException {
    try (InputStream in = Files.newInputStream(path, LinkOption.NOFOLLOW_LINKS)) {
      return new String(in.readNBytes(LONGEST), StandardCharsets.US_ASCII);
    }
  }

  private static Path folder(
      String named, Path temporary, String cure, FailureMaker failures) {
    if (isGuarded(named)) {
      return Path.of(named);
    }
    Path own = temporary;
    try {
      own = temporary.resolve("windlass-" + Integer.toUnsignedString(Guarded.user()));
      try {
        Files.createDirectory(own, only("rwx------"));
      } catch (FileAlreadyExistsException e) {
        // Another's may be there, which is looked at next.
      }
      String wrong = Guarded.objection(own, Guarded.FOLDER);
      if (wrong == null) {
        return own;
      }
      throw failures.make(Native.WL_RESOURCE, own + " " + wrong + cure);
    } catch (IOException | UnsupportedOperationException e) {
      throw failures.make(
          Native.WL_RESOURCE, own + " can't be made or read: " + e + cure, e, "", List.of());
    }
  }

  private static FileAttribute<?> only(String permissions) {
    return PosixFilePermissions.asFileAttribute(PosixFilePermissions.fromString(permissions));
  }

  private static boolean isGuarded(String folder) {
    try {
      return Path.of(folder).isAbsolute()
          && Guarded.objection(Path.of(folder), Guarded.FOLDER) == null;
    } catch (IOException | InvalidPathException e) {
      return false; // it names none
    }
  }

  /** What the user of this process alone may reach. */
  private static final class Guarded {
    /** Types as the kernel numbers them, in a mode. */
    static final int FOLDER = 0040000;

    static final int FILE = 0100000;

    private static final int TYPE = 0170000;
    private static final int OF_OTHERS = 0077;
    private static final Path STATUS = Path.of("/proc/self/status");

    /** By whose number files are made. */
    static int user() throws IOException {
      for (String line : Files.readAllLines(STATUS)) {
        if (line.startsWith("Uid:")) {
          return Integer.parseUnsignedInt(line.split("\\s+")[4]);
        }
      }
      throw new IOException(STATUS + " names no user");
    }

    /** What is wrong with what lies at {@code path}, which should be a {@code type}; or null. */
    static String objection(Path path, int type) throws IOException {
      Map<String, Object> found =
          Files.readAttributes(path, "unix:mode,uid", LinkOption.NOFOLLOW_LINKS);
      int mode = (Integer) found.get("mode");
      int owner = (Integer) found.get("uid");
      if ((mode & TYPE) != type) {
        return type == FOLDER ? "is no folder, or a link to one" : "is no file, or a link to one";
      }
      if (owner != user()) {
        return "belongs to user " + Integer.toUnsignedString(owner);
      }
      if ((mode & OF_OTHERS) != 0) {
        return "is open to others than its owner";
      }
      return null;
    }
  }
}
