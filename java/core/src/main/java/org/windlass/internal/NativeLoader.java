// SPDX-License-Identifier: Apache-2.0
package org.windlass.internal;

import java.io.FileInputStream;
import java.io.FileOutputStream;
import java.io.IOException;
import java.io.InputStream;
import java.io.OutputStream;
import java.io.RandomAccessFile;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.InvalidPathException;
import java.nio.file.NoSuchFileException;
import java.nio.file.Path;
import java.nio.file.attribute.PosixFilePermissions;
import java.util.ArrayList;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Objects;
import java.util.regex.Pattern;
import java.util.stream.Collectors;
import java.util.stream.Stream;
import org.jspecify.annotations.Nullable;

/**
 * Loads the native library and its JNI library, once for each class loader. It takes them from the
 * first of these places:
 *
 * <ol>
 *   <li>the folder named by the system property {@value #PATH_PROPERTY} or, without it, the
 *       environment variable {@value #PATH_VARIABLE}; if either is set, no other place is tried;
 *   <li>the jar with the classifier of this platform, {@code linux-x86_64} or {@code linux-arm64},
 *       copied to a new folder under {@code java.io.tmpdir} that the load deletes again;
 *   <li>the folders of {@code java.library.path}.
 * </ol>
 *
 * <p>A failure is an {@link UnsatisfiedLinkError} that names each searched place and its problem.
 */
public final class NativeLoader {
  /** System property with the folder that holds the libraries. */
  public static final String PATH_PROPERTY = "org.windlass.library.path";

  /** Environment variable with the folder that holds the libraries. */
  public static final String PATH_VARIABLE = "WINDLASS_LIBRARY_PATH";

  /** System property that names the target whose library is loaded. The default is {@code sim}. */
  public static final String TARGET_PROPERTY = "org.windlass.target";

  /** Environment variable that names the target. The system property takes precedence. */
  public static final String TARGET_VARIABLE = "WINDLASS_TARGET";

  private static final String DEFAULT = "sim";

  /** Platforms that have natives: os.name and os.arch, and the name in JavaCPP. */
  private static final Map<String, String> PLATFORMS =
      Map.of("Linux amd64", "linux-x86_64", "Linux aarch64", "linux-arm64");

  private static final String SYSTEM =
      System.getProperty("os.name") + " " + System.getProperty("os.arch");

  private static final String PLATFORM = PLATFORMS.getOrDefault(SYSTEM, "linux-x86_64");

  /** System property that JavaCPP's build tool sets to "false", so that nothing is loaded there. */
  private static final String BUILD_PROPERTY = "org.bytedeco.javacpp.loadlibraries";

  private static final String RESOURCES = "org/windlass/internal/" + PLATFORM + "/";

  /** Library that moves data between hosts through UCX. Ranks on one host don't need it. */
  private static final String UCX = "lib" + NativeConfig.LIBRARY + "-ucx.so";

  private static final int ELF_MAGIC = 0x464c457f;
  private static final int ELF_HEADER_BYTES = 64;
  private static final int ELF_SECTIONS_AT = 40;
  private static final int ELF_SECTION_BYTES = 58;
  private static final int ELF_SECTIONS = 60;

  /** Messages of musl for a library that needs glibc. */
  private static final Pattern OTHER_LIBC =
      Pattern.compile("Error relocating |Error loading shared library ld-linux-");

  /** Oldest version of glibc with which the natives load. */
  private static final String GLIBC = "2.28";

  /** Matches the file of a glibc that is too old. {@link #BANNER} finds the version in it. */
  private static final Pattern OLD_GLIBC = Pattern.compile("(\\S+): version `GLIBC_");
  private static final Pattern BANNER = Pattern.compile("GNU C Library .* version ([0-9.]+\\d)");

  /** Advice for a path that the JVM's locale can't name. */
  private static final String LOCALE = "in the JVM's locale; set LC_ALL=C.UTF-8";

  private static @Nullable String loadedFrom;

  /** Jar from which the loaded libraries were copied. Null if they were loaded from a folder. */
  private static @Nullable Source copied;

  /** Target from {@link #select} or from the settings. Null before the first use. */
  private static @Nullable String selected;

  /** Reason why the settings' target is not available. Null before the first check. */
  private static @Nullable String absence;

  private NativeLoader() {}

  public static synchronized void load() {
    // JavaCPP's build tool initialises these classes to read them, before there is a library.
    if (loadedFrom == null && !"false".equals(System.getProperty(BUILD_PROPERTY))) {
      if (!has(target())) {
        if (TargetToolkit.of(target()) == null) {
          throw new UnknownTargetError(
              setting() + " is " + unknown(Objects.requireNonNull(named()))
                  + "; name one or unset it: without that setting, windlass doctor tells which of"
                  + " them run here");
        }
        throw new UnsatisfiedLinkError(absence());
      }
      String from = find();
      int abi = abiVersion();
      if (abi != Native.WL_ABI_VERSION) {
        throw new UnsatisfiedLinkError(
            "the native library from " + from + " has C ABI version " + abi + ", these classes want "
                + Native.WL_ABI_VERSION + ": use a jar and a " + PLATFORM + " jar of one version");
      }
      loadedFrom = from;
    }
  }

  /**
   * Makes {@link #load} take the library of {@code target}, unless one is already loaded. Returns
   * true if the loaded library, or the one to be loaded, is that of {@code target}.
   */
  public static synchronized boolean select(String target) {
    if (loadedFrom == null) {
      selected = target;
    }
    return target.equals(target());
  }

  private static String target() {
    if (selected == null) {
      String named = named();
      selected = named == null ? DEFAULT : named.toLowerCase(Locale.ROOT);
    }
    return selected;
  }

  private static @Nullable String named() {
    return System.getProperty(TARGET_PROPERTY, System.getenv(TARGET_VARIABLE));
  }

  /** Asks the default target's library why the target that the settings name is not available. */
  private static String absence() {
    if (absence == null) {
      String target = target();
      selected = DEFAULT;
      try {
        find();
        absence =
            setting() + " is \"" + named() + "\": target " + target + " is not available here: "
                + Objects.requireNonNull(TargetToolkit.of(target)).lacking(target);
      } finally {
        selected = target;
      }
    }
    return absence;
  }

  private static String setting() {
    return System.getProperty(TARGET_PROPERTY) != null
        ? "system property " + TARGET_PROPERTY
        : "environment variable " + TARGET_VARIABLE;
  }

  /** Returns the message for {@code name}, which is not the name of a target. */
  public static String unknown(String name) {
    Stream<String> others =
        Stream.of(TargetToolkit.values()).flatMap(each -> each.targets().stream());
    return "\"" + name + "\"; known are "
        + Stream.concat(Stream.of(DEFAULT), others).collect(Collectors.joining(", "));
  }

  /** Returns true if a library for {@code target} can be found. */
  public static boolean has(String target) {
    return target.equals(DEFAULT)
        || TargetToolkit.of(target) != null && isThere(library(target));
  }

  private static String library(String target) {
    String suffix = target.equals(DEFAULT) ? "" : "-" + target;
    return "lib" + NativeConfig.LIBRARY + suffix + ".so";
  }

  private static boolean isThere(String file) {
    String named = System.getProperty(PATH_PROPERTY, System.getenv(PATH_VARIABLE));
    if (named == null) {
      return NativeLoader.class.getClassLoader().getResource(RESOURCES + file) != null
          || libraryPath().stream().anyMatch(folder -> isIn(folder, file));
    }
    return isIn(named, file);
  }

  private static boolean isIn(String folder, String file) {
    try {
      return Files.isReadable(Path.of(folder, file));
    } catch (InvalidPathException e) {
      return false;
    }
  }

  /** Thrown if a setting names a target that does not exist. In this case no library is missing. */
  static final class UnknownTargetError extends UnsatisfiedLinkError {
    private static final long serialVersionUID = 1L;

    private UnknownTargetError(String message) {
      super(message);
    }
  }

  private static List<String> files() {
    return List.of(library(target()), "lib" + NativeConfig.JNI_LIBRARY + ".so");
  }

  public static synchronized String loadedFrom() {
    load();
    return Objects.requireNonNull(loadedFrom);
  }

  /**
   * Makes the native library open the UCX library from the same folder or jar. From a jar, it opens
   * a temporary copy, which this call deletes again.
   *
   * @param error address of a {@code wl_error_t}
   * @return the code of {@code wl_ucx_find}
   */
  static synchronized int findUcx(long error) throws IOException {
    load();
    if (copied == null) {
      return Native.wl_ucx_find(null, error);
    }
    Path folder = privateFolder(Path.of(temporary()).toAbsolutePath());
    try {
      Path file = folder.resolve(UCX);
      try (InputStream in = copied.open(UCX)) {
        if (in == null) {
          return Native.wl_ucx_find(null, error);
        }
        copy(in, file);
      } catch (NoSuchFileException e) {
        return Native.wl_ucx_find(null, error);
      }
      return Native.wl_ucx_find(NativeMemory.utf8(file.toString()), error);
    } finally {
      delete(folder, List.of(UCX));
    }
  }

  private static String find() {
    try {
      return search();
    } catch (IllegalCallerException e) {
      // JDK 24 and later, with --illegal-native-access=deny.
      Module own = NativeLoader.class.getModule();
      throw new UnsatisfiedLinkError(
          "this JVM allows no native access, without which Windlass loads no natives: start java with"
              + " --enable-native-access=" + (own.isNamed() ? own.getName() : "ALL-UNNAMED"));
    }
  }

  private static String search() {
    if (!PLATFORMS.containsKey(SYSTEM)) {
      throw new UnsatisfiedLinkError(
          "Windlass has natives only for Linux amd64 and aarch64; this is " + SYSTEM);
    }
    String named = System.getProperty(PATH_PROPERTY);
    String by = "system property " + PATH_PROPERTY;
    if (named == null) {
      named = System.getenv(PATH_VARIABLE);
      by = "environment variable " + PATH_VARIABLE;
    }
    List<String> tried = new ArrayList<>();
    if (named != null) {
      if (fromFolder(named, by, tried)) {
        return named;
      }
    } else if (fromJar(tried)) {
      return "the " + PLATFORM + " jar";
    } else {
      for (String folder : libraryPath()) {
        if (fromFolder(folder, "java.library.path", tried)) {
          return folder;
        }
      }
    }
    throw new UnsatisfiedLinkError(
        "cannot load the Windlass natives (" + String.join(", ", files()) + "); tried:\n  "
            + String.join("\n  ", tried));
  }

  private static List<String> libraryPath() {
    String path = System.getProperty("java.library.path", "");
    return Pattern.compile(":").splitAsStream(path).filter(s -> !s.isEmpty()).toList();
  }

  private static boolean fromFolder(String name, String by, List<String> tried) {
    String place = by + ", folder " + name + ": ";
    Path folder;
    try {
      folder = Path.of(name).toAbsolutePath();
    } catch (InvalidPathException e) {
      tried.add(place + "no valid path here, " + LOCALE);
      return false;
    }
    for (String file : files()) {
      if (!Files.isReadable(folder.resolve(file))) {
        tried.add(place + (Files.exists(folder) ? "no readable " + file : "no such folder"));
        return false;
      }
    }
    try {
      loadAll(folder);
      return true;
    } catch (UnsatisfiedLinkError e) {
      if (isLoadedElsewhere(e)) {
        // The JVM gives one file to one class loader only. A copy counts as another file.
        Source source = file -> new FileInputStream(folder.resolve(file).toFile());
        return fromCopy(place, source, tried);
      }
      tried.add(place + words(e));
      return false;
    }
  }

  private static boolean fromJar(List<String> tried) {
    ClassLoader loader = NativeLoader.class.getClassLoader();
    String place = PLATFORM + " jar: ";
    for (String file : files()) {
      if (loader.getResource(RESOURCES + file) == null) {
        tried.add(
            place + "not on the class path: add the dependency org.windlass:windlass with classifier "
                + PLATFORM + " (on the module path it wants --add-modules org.windlass."
                + PLATFORM.replace('-', '.') + ")");
        return false;
      }
    }
    return fromCopy(place, file -> loader.getResourceAsStream(RESOURCES + file), tried);
  }

  /**
   * Writes a new file in a folder that only this process uses. Like all file access here, it uses
   * streams that ignore interrupts. The JVM never repeats a load that an interrupt has ended.
   */
  private static void copy(InputStream in, Path file) throws IOException {
    try (OutputStream out = new FileOutputStream(file.toFile())) {
      in.transferTo(out);
    }
  }

  private interface Source {
    @Nullable InputStream open(String file) throws IOException;
  }

  private static boolean fromCopy(String place, Source source, List<String> tried) {
    String named = temporary();
    Path temporary;
    try {
      temporary = Path.of(named).toAbsolutePath();
    } catch (InvalidPathException e) {
      // For example, the path has characters outside ASCII, and the locale is C.
      tried.add(
          place + "cannot be copied to the temporary folder " + named + ": no valid path here, "
              + LOCALE + " or another folder with -Djava.io.tmpdir");
      return false;
    }
    Path folder = null;
    try {
      folder = privateFolder(temporary);
      for (String file : files()) {
        try (InputStream in = source.open(file)) {
          copy(Objects.requireNonNull(in), folder.resolve(file));
        }
      }
      loadAll(folder);
      copied = source;
      return true;
    } catch (IOException e) {
      tried.add(
          place + "cannot be copied to the temporary folder " + temporary + " (" + e + "); name a"
              + " writable one with -Djava.io.tmpdir, or unpack the natives and name their folder with -D"
              + PATH_PROPERTY);
      return false;
    } catch (UnsatisfiedLinkError e) {
      tried.add(
          place + "copied to the temporary folder " + temporary + ", which " + refusal(e, temporary));
      return false;
    } finally {
      delete(folder, files());
    }
  }

  /** Returns the linker's message. Explains it if the C library is too old or is not glibc. */
  private static String words(UnsatisfiedLinkError e) {
    String said = String.valueOf(e.getMessage());
    var old = OLD_GLIBC.matcher(said);
    boolean isOld = old.find();
    if (!isOld && !OTHER_LIBC.matcher(said).find()) {
      return said;
    }
    return said + ": the natives take glibc " + GLIBC + " or later, as RHEL 8 and Ubuntu 20.04"
        + " have it, and this system's C library is "
        + (isOld ? glibcOf(Path.of(old.group(1))) : "another");
  }

  private static String glibcOf(Path file) {
    try {
      var banner = BANNER.matcher(Files.readString(file, StandardCharsets.ISO_8859_1));
      return banner.find() ? "glibc " + banner.group(1) : "an older glibc";
    } catch (IOException e) {
      return "an older glibc";
    }
  }

  static String temporary() {
    return System.getProperty("java.io.tmpdir");
  }

  private static Path privateFolder(Path temporary) throws IOException {
    var mode = PosixFilePermissions.asFileAttribute(PosixFilePermissions.fromString("rwx------"));
    return Files.createTempDirectory(temporary, "windlass-", mode);
  }

  private static String refusal(UnsatisfiedLinkError e, Path temporary) {
    String message = words(e);
    // The dynamic linker reports a refused mmap(PROT_EXEC) in these words.
    if (message.contains("failed to map segment")) {
      return "allows no execution (noexec mount?): " + message + "; name another folder than "
          + temporary + " with -Djava.io.tmpdir, or unpack the natives and name their folder with -D"
          + PATH_PROPERTY;
    }
    return "did not load: " + message;
  }

  private static void loadAll(Path folder) {
    for (String file : files()) {
      requireWhole(folder.resolve(file));
      System.load(folder.resolve(file).toString());
    }
  }

  /** Throws for a truncated file. If the linker mapped such a file, the JVM would crash. */
  private static void requireWhole(Path file) {
    try (RandomAccessFile in = new RandomAccessFile(file.toFile(), "r")) {
      byte[] bytes = new byte[ELF_HEADER_BYTES];
      boolean isShort = in.length() < bytes.length;
      in.readFully(bytes, 0, isShort ? 0 : bytes.length);
      ByteBuffer header = ByteBuffer.wrap(bytes).order(ByteOrder.LITTLE_ENDIAN);
      if (isShort || header.getInt(0) != ELF_MAGIC) {
        throw new UnsatisfiedLinkError(file + " is no shared library");
      }
      // The table of sections is at the end of the file.
      long end =
          header.getLong(ELF_SECTIONS_AT)
              + (long) header.getShort(ELF_SECTION_BYTES) * header.getShort(ELF_SECTIONS);
      if (in.length() < end) {
        throw new UnsatisfiedLinkError(
            file + " is cut short: it has " + in.length() + " of " + end + " bytes");
      }
    } catch (IOException e) {
      throw new UnsatisfiedLinkError(file + " can't be read: " + e.getMessage());
    }
  }

  private static boolean isLoadedElsewhere(UnsatisfiedLinkError e) {
    return String.valueOf(e.getMessage()).contains("already loaded in another classloader");
  }

  /** Deletes copies of libraries. Loaded ones stay mapped after their files are deleted. */
  private static void delete(@Nullable Path folder, List<String> files) {
    if (folder == null) {
      return;
    }
    try {
      for (String file : files) {
        Files.deleteIfExists(folder.resolve(file));
      }
      Files.deleteIfExists(folder);
    } catch (IOException e) {
      folder.toFile().deleteOnExit();
    }
  }

  private static native int abiVersion();

  /** Returns why the Ascend runtime can't be opened, with the places searched, or null. */
  static native @Nullable String ascendRefusal();

  /** Returns the reason why no CUDA driver or device is available. Null if both are. */
  static native @Nullable String cudaRefusal();
}
