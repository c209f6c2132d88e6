// SPDX-License-Identifier: Apache-2.0
package org.windlass.testing;

import java.io.IOException;
import java.io.UncheckedIOException;
import java.lang.management.ManagementFactory;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.function.Predicate;
import java.util.stream.Stream;
import javax.management.JMException;
import javax.management.ObjectName;

/** What this process has in use that operations could leave behind. */
public record Resources(long threads, long descriptors, long mappings, long residentKib) {

  private static final int LOOKS = 20;

  /** Once what has ended is gone. */
  public static Resources settled() {
    return least(look -> false);
  }

  /** The least of some looks, the last of which is the first that is enough. */
  private static Resources least(Predicate<Resources> enough) {
    Resources least = now();
    for (int i = 0; i < LOOKS && !enough.test(least); i++) {
      System.gc();
      trim();
      try {
        Thread.sleep(50);
      } catch (InterruptedException e) {
        Thread.currentThread().interrupt();
      }
      Resources now = now();
      least =
          new Resources(
              Math.min(least.threads, now.threads),
              Math.min(least.descriptors, now.descriptors),
              Math.min(least.mappings, now.mappings),
              Math.min(least.residentKib, now.residentKib));
    }
    return least;
  }

  /**
   * Hands back to the system what the C library keeps of memory that the JVM's compilers have
   * freed, tens of MiB otherwise.
   */
  private static void trim() {
    try {
      ManagementFactory.getPlatformMBeanServer()
          .invoke(
              new ObjectName("com.sun.management:type=DiagnosticCommand"),
              "systemTrimNativeHeap",
              null,
              null);
    } catch (JMException e) {
      // A JDK before 17.0.9 can't.
    }
  }

  /** At this moment. */
  public static Resources now() {
    long own =
        Thread.getAllStackTraces().keySet().stream()
            .filter(thread -> thread.getName().startsWith("windlass") || isFault(thread))
            .count();
    try (Stream<Path> descriptors = Files.list(Path.of("/proc/self/fd"));
        Stream<String> mappings = Files.lines(Path.of("/proc/self/maps"));
        Stream<String> status = Files.lines(Path.of("/proc/self/status"))) {
      long resident =
          status
              .filter(line -> line.startsWith("VmRSS:"))
              .mapToLong(line -> Long.parseLong(line.replaceAll("\\D", "")))
              .findFirst()
              .orElseThrow();
      return new Resources(own, descriptors.count(), mappings.count(), resident);
    } catch (IOException e) {
      throw new UncheckedIOException(e);
    }
  }

  private static boolean isFault(Thread thread) {
    return thread.getName().equals("fault");
  }

  /** Fails where there is more now, once what has ended is gone. */
  public void requireNoMoreNow() {
    Resources later = least(this::allows);
    if (!allows(later)) {
      throw new AssertionError("left behind: " + this + " became " + later);
    }
  }

  /**
   * Whether {@code later} has no more than the runtime itself takes for its own: the C library
   * keeps stacks of ended threads and arenas, some two mappings each; heap, compiled code and what
   * the collector knows of them grow by 70 to 80 MiB in the first quarter of an hour, as native
   * memory tracking tells.
   */
  private boolean allows(Resources later) {
    return later.threads <= threads
        && later.descriptors <= descriptors
        && later.mappings <= mappings + 150
        && later.residentKib <= residentKib + (128 << 10);
  }
}
