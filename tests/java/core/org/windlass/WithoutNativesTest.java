// SPDX-License-Identifier: Apache-2.0
package org.windlass;

import static org.assertj.core.api.Assertions.assertThat;

import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.Arrays;
import java.util.LinkedHashMap;
import java.util.Map;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;
import org.windlass.error.UnsupportedException;
import org.windlass.kernel.Target;
import org.windlass.report.RunningJob;
import org.windlass.testing.WithoutNatives;

/** Calls of a process that finds no natives. */
@Timeout(120)
class WithoutNativesTest {
  @TempDir Path folder;

  static final class Caller {
    public static void main(String[] arguments) {
      Map<String, Runnable> calls = new LinkedHashMap<>();
      calls.put("LocalGroup.of", () -> LocalGroup.of(2).close());
      calls.put(
          "Communicator.meet",
          () ->
              Communicator.meet(
                  Samples.alone(), CommunicatorOptions.defaults(), Duration.ofSeconds(1)));
      calls.put("Tensor.allocate", () -> Tensor.allocate(DType.F32, 4));
      calls.put("Tensor.of", () -> Tensor.of(ByteBuffer.allocateDirect(8), DType.U8, 8));
      calls.put("Tensor.of address", () -> Tensor.of(8, 8, null, DType.U8, 8));
      calls.put("Target.available", Target.SIM::available);
      calls.put("Target.require", Target.CUDA::require);
      calls.put("NativeLibrary.version", NativeLibrary::version);
      calls.put("RunningJob.at", () -> RunningJob.at("1", Map.of(), Duration.ofSeconds(1)));
      WithoutNatives.make(calls);
    }
  }

  @Test
  void eachCallIsRefusedInTheSameWords() throws Exception {
    WithoutNatives.requireRefused(Caller.class, 9, folder);
  }

  @Test
  void nativesThatAreCutShortAreRefused() throws Exception {
    Path natives = Path.of(System.getProperty("org.windlass.library.path"));
    byte[] jni = Files.readAllBytes(natives.resolve("libjniwindlass.so"));
    byte[] library = Files.readAllBytes(natives.resolve("libwindlass.so"));
    Files.write(folder.resolve("libjniwindlass.so"), jni);
    for (int length : new int[] {0, 63, 64, 4096, 100_000, library.length - 1}) {
      Files.write(folder.resolve("libwindlass.so"), Arrays.copyOf(library, length));
      assertThat(WithoutNatives.said(Reason.class, folder, folder))
          .as("%d bytes", length)
          .containsPattern("libwindlass.so is (no shared library|cut short: it has )");
    }
  }

  static final class Interrupted {
    public static void main(String[] arguments) {
      Thread.currentThread().interrupt();
      Tensor.allocate(DType.F32, 4);
      System.out.println("loaded, and interrupted: " + Thread.interrupted());
    }
  }

  /** As by a task that was cancelled: its thread is the first to use the library. */
  @Test
  void anInterruptKeepsNoNativesFromLoading() throws Exception {
    Path natives = Path.of(System.getProperty("org.windlass.library.path"));
    assertThat(WithoutNatives.said(Interrupted.class, natives, folder))
        .isEqualTo("loaded, and interrupted: true\n");
  }

  static final class Reason {
    public static void main(String[] arguments) {
      System.out.println(NativeLibrary.problem().orElse("it loads"));
      try {
        Tensor.allocate(DType.F32, 4);
      } catch (UnsupportedException e) {
        System.out.println("cause: " + e.getCause());
      }
    }
  }

  /** Copies of the natives, which ask for another version of glibc than they were linked with. */
  private void copyNativesOfGlibc(String version) throws IOException {
    Path natives = Path.of(System.getProperty("org.windlass.library.path"));
    for (String name : new String[] {"libwindlass.so", "libjniwindlass.so"}) {
      String bytes = Files.readString(natives.resolve(name), StandardCharsets.ISO_8859_1);
      String asked = bytes.replaceAll("GLIBC_2\\.2[0-9]\0", "GLIBC_" + version + "\0");
      Files.writeString(folder.resolve(name), asked, StandardCharsets.ISO_8859_1);
    }
  }

  @Test
  void nativesThatTakeANewerGlibcSaySoOnce() throws Exception {
    Path build = Path.of(System.getProperty("windlass.root"), "CMakeLists.txt");
    assertThat(Files.readString(build)).contains("set(WINDLASS_GLIBC_CAP \"2.28\"");
    copyNativesOfGlibc("9.27");
    assertThat(WithoutNatives.said(Reason.class, folder, folder))
        .contains("GLIBC_9.27")
        .contains("the natives take glibc 2.28 or later")
        .containsPattern("this system's C library is glibc 2\\.[0-9]+")
        .endsWith("cause: null\n");
  }
}
