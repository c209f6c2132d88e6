// SPDX-License-Identifier: Apache-2.0
package org.windlass.internal.rendezvous;

import static org.assertj.core.api.Assertions.assertThat;
import static org.junit.jupiter.api.Assumptions.assumeTrue;
import static org.windlass.internal.store.Failure.assertFails;
import static org.windlass.internal.store.StoreTest.start;

import java.lang.reflect.Method;
import java.net.InetAddress;
import java.net.InetSocketAddress;
import java.net.URL;
import java.net.URLClassLoader;
import java.nio.file.FileSystemException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.attribute.PosixFilePermissions;
import java.time.Duration;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.FutureTask;
import java.util.stream.Stream;
import org.assertj.core.api.Assertions;
import org.bytedeco.javacpp.Loader;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;
import org.windlass.internal.Native;
import org.windlass.internal.rendezvous.RendezvousFile.Place;
import org.windlass.internal.store.Token;

/** What the others find in the file that rank 0 writes, and what they don't take for one. */
@Timeout(60)
class RendezvousFileTest {
  private static final Duration LONG = Duration.ofSeconds(30);
  private static final Duration SHORT = Duration.ofMillis(20);

  @TempDir private Path temporary;

  private Path folder;

  @BeforeEach
  void makeFolder() throws Exception {
    folder = Files.createDirectory(temporary.resolve("run"));
    mode(folder, "rwx------");
  }

  private RendezvousFile of(String job) {
    return of(job, folder);
  }

  private RendezvousFile of(String job, Path named) {
    return RendezvousFile.of(job, "WINDLASS_RENDEZVOUS", named.toString(), temporary);
  }

  private static Place place(int port) {
    return new Place(
        new InetSocketAddress(InetAddress.getLoopbackAddress(), port), Token.random());
  }

  private static void mode(Path path, String permissions) throws Exception {
    Files.setPosixFilePermissions(path, PosixFilePermissions.fromString(permissions));
  }

  private static List<Path> within(Path folder) throws Exception {
    try (Stream<Path> all = Files.list(folder)) {
      return all.toList();
    }
  }

  private static void requireSame(Place read, Place written) {
    assertThat(read.address()).isEqualTo(written.address());
    assertThat(read.token().digits()).isEqualTo(written.token().digits());
  }

  @Test
  void theOthersReadWhatRankZeroWritesAsLongAsItIsOpen() throws Exception {
    Place place = place(4711);
    try (RendezvousFile own = of("job")) {
      FutureTask<Place> early = start(() -> of("job").await(LONG));
      own.write(place);
      requireSame(early.get(), place);
      requireSame(of("job").await(SHORT), place);
      assertThat(within(folder)).containsExactly(own.path());
      assertThat(PosixFilePermissions.toString(Files.getPosixFilePermissions(own.path())))
          .isEqualTo("rw-------");
    }
    assertThat(within(folder)).isEmpty();
    assertFails(Native.WL_DEADLINE_EXCEEDED, () -> of("job").await(SHORT))
        .contains("rank 0", folder + "/", "is not there", "20 ms")
        .contains("WINDLASS_RENDEZVOUS", "WINDLASS_TOKEN_FILE");
  }

  @Test
  void jobsOfOtherNamesHaveFilesOfTheirOwn() throws Exception {
    try (RendezvousFile one = of("one");
        RendezvousFile two = of("two")) {
      Place first = place(1);
      Place second = place(2);
      one.write(first);
      two.write(second);
      requireSame(of("two").await(SHORT), second);
      requireSame(of("one").await(SHORT), first);
    }
    assertThat(within(folder)).isEmpty();
  }

  @Test
  void oneNameServesOneStartAfterTheOther() throws Exception {
    for (int port = 1; port <= 3; port++) {
      Place place = place(port);
      try (RendezvousFile file = of("job")) {
        file.write(place);
        requireSame(of("job").await(SHORT), place);
      }
    }
    assertThat(within(folder)).isEmpty();
  }

  @Test
  void aJobOfTheNameOfOneThatStartsIsRefused() throws Exception {
    Place place = place(4711);
    try (RendezvousFile own = of("job")) {
      own.write(place);
      try (RendezvousFile other = of("job")) {
        assertFails(Native.WL_RESOURCE, () -> other.write(place(4712)))
            .contains("process " + ProcessHandle.current().pid(), "WINDLASS_JOB");
      }
      requireSame(of("job").await(SHORT), place);
    }
  }

  private Path lockOf(String job) {
    Path file = of(job).path();
    return file.resolveSibling(file.getFileName() + ".lock");
  }

  /** Of locks that the system has, those on {@code file}. */
  private static long locksOn(Path file) throws Exception {
    String inode = ":" + Files.getAttribute(file, "unix:ino") + " ";
    try (Stream<String> all = Files.lines(Path.of("/proc/locks"))) {
      return all.filter(lock -> lock.contains(inode)).count();
    }
  }

  /** A thread that has the lock, and opens the store that {@code store} comes to be. */
  private FutureTask<Place> opening(RendezvousFile file, CompletableFuture<Place> store)
      throws Exception {
    CountDownLatch isOpening = new CountDownLatch(1);
    FutureTask<Place> opened =
        start(
            () ->
                file.findOr(
                    () -> {
                      isOpening.countDown();
                      return store.join();
                    },
                    LONG));
    isOpening.await();
    return opened;
  }

  /** One thread opens a store, and another of its process has no time to wait for that. */
  @Test
  void whoOpensAStoreKeepsItsLockWhateverOthersOfItsProcessDo() throws Exception {
    Path lock = lockOf("job");
    CompletableFuture<Place> store = new CompletableFuture<>();
    Place place = place(4711);
    try (RendezvousFile own = of("job")) {
      FutureTask<Place> opened = opening(own, store);
      var late = assertFails(Native.WL_DEADLINE_EXCEEDED,
          () -> of("job").findOr(() -> place(4712), SHORT));
      assertThat(locksOn(lock)).isEqualTo(1);
      late.contains(lock.toString(), "another thread has held it for 20 ms");
      store.complete(place);
      requireSame(opened.get(), place);
      assertThat(locksOn(lock)).isZero();
      requireSame(of("job").findOr(() -> place(4713), SHORT), place);
    }
  }

  /** Variables that name one folder in two ways, by a link to what it lies in. */
  @Test
  void oneFolderHasOneLockHoweverItIsNamed() throws Exception {
    Path alias = Files.createSymbolicLink(temporary.resolve("alias"), temporary);
    RendezvousFile other = of("job", alias.resolve("run"));
    assertThat(other.path()).isNotEqualTo(of("job").path());
    CompletableFuture<Place> store = new CompletableFuture<>();
    Place place = place(4711);
    try (RendezvousFile own = of("job")) {
      FutureTask<Place> opened = opening(own, store);
      var late =
          assertFails(Native.WL_DEADLINE_EXCEEDED, () -> other.findOr(() -> place(4712), SHORT));
      assertThat(locksOn(lockOf("job"))).isEqualTo(1);
      late.contains("another thread has held it for 20 ms");
      store.complete(place);
      requireSame(opened.get(), place);
      requireSame(other.findOr(() -> place(4713), LONG), place);
    }
  }

  /** What a copy of Windlass does in a class loader of its own. */
  public static final class Copy {
    private Copy() {}

    /** What becomes of a look for the place of "job" which is to open none, in so short a time. */
    public static String found(String folder, String temporary, long millis) {
      RendezvousFile file =
          RendezvousFile.of("job", "none", folder, Path.of(temporary));
      try {
        return file.findOr(() -> place(4712), Duration.ofMillis(millis)).address().toString();
      } catch (RuntimeException e) {
        return e.toString();
      }
    }
  }

  /** Those of Windlass, of these tests and of what they need, once more. */
  private static URLClassLoader classesAgain() {
    URL[] places =
        Stream.of(RendezvousFile.class, RendezvousFileTest.class, Loader.class, Assertions.class)
            .map(type -> type.getProtectionDomain().getCodeSource().getLocation())
            .toArray(URL[]::new);
    return new URLClassLoader(places, ClassLoader.getPlatformClassLoader());
  }

  /** The locks of the system are the process's, and the JVM's own know no class loaders. */
  @Test
  void anotherClassLoadersWindlassWaitsForTheLockToo() throws Exception {
    Path lock = lockOf("job");
    CompletableFuture<Place> store = new CompletableFuture<>();
    Place place = place(4711);
    try (RendezvousFile own = of("job");
        URLClassLoader again = classesAgain()) {
      Method found =
          again.loadClass(Copy.class.getName()).getMethod(
              "found", String.class, String.class, long.class);
      FutureTask<Place> opened = opening(own, store);
      Object late = found.invoke(null, "" + folder, "" + temporary, SHORT.toMillis());
      assertThat(locksOn(lock)).isEqualTo(1);
      assertThat(late).asString().contains(lock + ": another thread has held it for 20 ms");
      store.complete(place);
      requireSame(opened.get(), place);
      assertThat(found.invoke(null, "" + folder, "" + temporary, LONG.toMillis()))
          .isEqualTo("/127.0.0.1:4711");
    }
  }

  /** Where no place is to be found, for {@code reason}, and rank 0 writes its own. */
  private void requireAbsent(RendezvousFile file, String reason) throws Exception {
    assertFails(Native.WL_DEADLINE_EXCEEDED, () -> of("job").await(SHORT))
        .contains(file.path().toString(), reason);
    Place place = place(4713);
    file.write(place);
    requireSame(of("job").await(SHORT), place);
    file.close();
    assertThat(within(folder)).isEmpty();
  }

  /** What {@code file} holds for a place; it is written no more. */
  private static String text(RendezvousFile file) throws Exception {
    file.write(place(4711));
    String text = Files.readString(file.path());
    file.close();
    return text;
  }

  private static void write(RendezvousFile file, String text) throws Exception {
    Files.writeString(file.path(), text);
    mode(file.path(), "rw-------");
  }

  @Test
  void whatAKilledProcessLeftBehindIsReplaced() throws Exception {
    RendezvousFile file = of("job");
    String text = text(file);
    Process ended = new ProcessBuilder("true").start();
    ended.waitFor();
    write(file, text.replaceAll("process [0-9]+", "process " + ended.pid()));
    requireAbsent(file, "was left behind by process " + ended.pid() + ", which has ended");
    // The number has passed to another process, which is this one.
    write(file, text.replaceAll("(process [0-9]+) [0-9]+", "$1 1"));
    requireAbsent(file, "was left behind by process " + ProcessHandle.current().pid());
  }

  @Test
  void whatIsNoRendezvousIsReplaced() throws Exception {
    RendezvousFile file = of("job");
    String text = text(file);
    for (String garbage :
        List.of(
            "",
            "\0\0\0",
            "x".repeat(100_000),
            text.substring(0, text.length() - 1),
            text + "\n",
            text + text,
            text.replace("rendezvous 2", "rendezvous 3"),
            text.replace("4711", "0"),
            text.replace("4711", "65536"),
            text.replaceFirst("token .", "token g"))) {
      write(file, garbage);
      requireAbsent(file, "has no content that this version of Windlass can read");
    }
  }

  @Test
  void whatIsNotItsUsersAloneIsReplaced() throws Exception {
    RendezvousFile file = of("job");
    String text = text(file);
    for (String open : List.of("rw-r-----", "rw----r--", "rw--w----", "rw------x")) {
      write(file, text);
      mode(file.path(), open);
      requireAbsent(file, "is accessible to other users than its owner");
    }
    Path aim = temporary.resolve("aim");
    Files.writeString(aim, text);
    mode(aim, "rw-------");
    Files.createSymbolicLink(file.path(), aim);
    requireAbsent(file, "is not a file, or is a link");
    assertThat(aim).hasContent(text);
  }

  @Test
  void aFolderInItsPlaceIsNamed() throws Exception {
    RendezvousFile file = of("job");
    Files.createDirectory(file.path());
    Files.createFile(file.path().resolve("x"));
    assertFails(Native.WL_DEADLINE_EXCEEDED, () -> of("job").await(SHORT)).contains("is not a file");
    assertFails(Native.WL_RESOURCE, () -> file.write(place(1))).contains(file.path().toString());
    assertThat(within(folder)).containsExactly(file.path());
  }

  @Test
  void whatAnotherUserOwnsIsNotTrusted() throws Exception {
    assumeTrue(OtherUser.canOwn(temporary), "only root gives files away");
    RendezvousFile file = of("job");
    write(file, text(file));
    OtherUser.own(file.path());
    requireAbsent(file, "belongs to user " + OtherUser.USER);
    Path own = of("job", temporary.resolve("none")).path().getParent();
    OtherUser.own(own);
    assertFails(Native.WL_RESOURCE, () -> of("job", temporary.resolve("none")))
        .contains(own.toString(), "belongs to user " + OtherUser.USER, "XDG_RUNTIME_DIR");
    OtherUser.own(folder);
    assertFails(Native.WL_RESOURCE, () -> of("job", folder)).contains(own.toString());
  }

  /** Another user of this machine, who may have no name. */
  private static final class OtherUser {
    static final int USER = 54_321;

    static void own(Path path) throws Exception {
      Files.setAttribute(path, "unix:uid", USER);
    }

    static boolean canOwn(Path folder) throws Exception {
      Path probe = Files.createTempFile(folder, "probe", "");
      try {
        own(probe);
        return true;
      } catch (FileSystemException e) {
        return false;
      } finally {
        Files.delete(probe);
      }
    }
  }

  @Test
  void whereNoFolderIsNamedThatIsTheUsersAloneOneIsMade() throws Exception {
    Path link = Files.createSymbolicLink(temporary.resolve("link"), folder);
    Path open = Files.createDirectory(temporary.resolve("open"));
    mode(open, "rwxr-x---");
    Path file = Files.createFile(temporary.resolve("file"));
    mode(file, "rwx------");
    Path own = null;
    for (Path named :
        List.of(link, open, file, temporary.resolve("none"), Path.of("run"), Path.of(""))) {
      own = of("job", named).path().getParent();
      assertThat(own.getParent()).isEqualTo(temporary);
      assertThat(own.getFileName().toString()).matches("windlass-[0-9]+");
      assertThat(PosixFilePermissions.toString(Files.getPosixFilePermissions(own)))
          .isEqualTo("rwx------");
    }
    mode(own, "rwxrwxrwx");
    assertFails(Native.WL_RESOURCE, () -> of("job", open))
        .contains("is accessible to other users", "XDG_RUNTIME_DIR", "WINDLASS_RENDEZVOUS");
    Files.delete(own);
    Files.createSymbolicLink(own, folder);
    assertFails(Native.WL_RESOURCE, () -> of("job", open)).contains("is not a folder, or is a link");
  }

  @Test
  void anInterruptEndsTheWait() throws Exception {
    Thread.currentThread().interrupt();
    try {
      assertFails(Native.WL_ABORTED, () -> of("job").await(LONG)).contains("interrupted");
      assertThat(Thread.currentThread().isInterrupted()).isTrue();
    } finally {
      Thread.interrupted();
    }
  }
}
