// SPDX-License-Identifier: Apache-2.0
package org.windlass.cli.documents;

import static org.assertj.core.api.Assertions.assertThat;

import java.io.IOException;
import java.io.OutputStream;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.concurrent.TimeUnit;
import java.util.jar.Attributes;
import java.util.jar.JarOutputStream;
import java.util.jar.Manifest;
import java.util.stream.Collectors;
import java.util.stream.Stream;
import org.windlass.DType;
import org.windlass.testing.TestFile;

/**
 * A folder in which commands of the pages run as they stand there: it looks as a built checkout,
 * with {@code windlass} and {@code java} of the classes under test, the programs of the pages and
 * the files that pages name.
 *
 * @param folder where
 */
record Sandbox(Path folder) {
  private static final long LIMIT_S = 120;
  private static final String HOME = System.getProperty("java.home");

  /** Makes the folder's content. */
  Sandbox {
    try {
      Path lib = Files.createDirectories(folder.resolve("java/cli/target/windlass/lib"));
      Files.createDirectories(folder.resolve("bin"));
      Files.createDirectories(folder.resolve("scripts"));
      Path jar = pathJar(lib.resolve("windlass.jar"));
      // As a tutorial's project once it is built.
      Path target = Files.createDirectories(folder.resolve("target/dependency")).getParent();
      Files.copy(jar, target.resolve("dependency/windlass.jar"));
      Files.createSymbolicLink(target.resolve("classes"), folder);
      try (Stream<Path> natives =
          Files.list(Path.of(System.getProperty("org.windlass.library.path")))) {
        for (Path file : natives.toList()) {
          Files.copy(file, lib.resolve(file.getFileName()));
        }
      }
      script(
          folder.resolve("bin/java"),
          "exec '"
              + HOME
              + "/bin/java' -Xmx256m -XX:+UseSerialGC -XX:TieredStopAtLevel=1 -XX:-UsePerfData"
              + " -XX:+UseTransparentHugePages"
              // The test's own JVM verifies the same classes.
              + " -XX:+UnlockDiagnosticVMOptions -XX:-BytecodeVerificationRemote"
              + " --enable-native-access=ALL-UNNAMED \"$@\"");
      for (String windlass : List.of("bin/windlass", "scripts/windlass")) {
        script(
            folder.resolve(windlass), "exec java -cp '" + jar + "' org.windlass.cli.Main \"$@\"");
      }
    } catch (IOException e) {
      throw new java.io.UncheckedIOException(e);
    }
  }

  /** Whether natives for several hosts are here. */
  boolean hasUcx() {
    return Files.exists(folder.resolve("java/cli/target/windlass/lib/libwindlass-ucx.so"));
  }

  private static void script(Path file, String line) throws IOException {
    Files.writeString(file, "#!/bin/sh\n" + line + "\n");
    assertThat(file.toFile().setExecutable(true)).isTrue();
  }

  /** A jar that has the class path of this process. */
  private static Path pathJar(Path jar) throws IOException {
    Manifest manifest = new Manifest();
    manifest.getMainAttributes().put(Attributes.Name.MANIFEST_VERSION, "1.0");
    manifest
        .getMainAttributes()
        .put(
            Attributes.Name.CLASS_PATH,
            Arrays.stream(System.getProperty("java.class.path").split(":"))
                .map(entry -> Path.of(entry).toUri().toString())
                .collect(Collectors.joining(" ")));
    try (OutputStream out = Files.newOutputStream(jar)) {
      new JarOutputStream(out, manifest).close();
    }
    return jar;
  }

  /** A checkpoint of layout {@code 2x4:P,S0} of one tensor, a folder of ranks. */
  void checkpoint(String name) throws IOException {
    Path in = Files.createDirectories(folder.resolve(name));
    for (int rank = 0; rank < 8; rank++) {
      TestFile.Tensor part = tensor("w", DType.F32, 4, 12);
      TestFile.write(in.resolve("rank-%05d.safetensors".formatted(rank)), List.of(part), Map.of());
    }
  }

  /** Whole numbers as elements, in f32 or bf16. */
  static TestFile.Tensor tensor(String name, DType dtype, int... shape) {
    long[] bits = new long[Arrays.stream(shape).reduce(1, (a, b) -> a * b)];
    for (int i = 0; i < bits.length; i++) {
      bits[i] = Float.floatToIntBits(i % 64) >>> (dtype == DType.BF16 ? 16 : 0);
    }
    return new TestFile.Tensor(name, dtype, shape, bits);
  }

  /** A process that starts in the folder and finds its commands. */
  ProcessBuilder process(List<String> command) {
    ProcessBuilder builder = new ProcessBuilder(command).directory(folder.toFile());
    Map<String, String> variables = builder.environment();
    variables.keySet().removeIf(name -> name.startsWith("WINDLASS_") || name.equals("CLASSPATH"));
    variables.put("PATH", folder.resolve("bin") + ":" + HOME + "/bin:" + variables.get("PATH"));
    variables.put(
        "WINDLASS_LIBRARY_PATH", folder.resolve("java/cli/target/windlass/lib").toString());
    variables.put("CLASSPATH", folder + ":" + folder.resolve("java/cli/target/windlass/lib/*"));
    // Jobs of one name connect in this test only.
    variables.put("XDG_RUNTIME_DIR", folder.toString());
    return builder;
  }

  /** Runs commands of bash; they shall succeed. What they print is given back. */
  String run(String commands) throws IOException, InterruptedException {
    Path script = folder.resolve("commands");
    Path out = folder.resolve("commands-out");
    Path err = folder.resolve("commands-err");
    Files.writeString(
        script,
        "set -euo pipefail\n" + commands + "\nfor job in $(jobs -p); do wait \"$job\"; done\n");
    Process process =
        process(new ArrayList<>(List.of("bash", script.toString())))
            .redirectInput(ProcessBuilder.Redirect.from(Path.of("/dev/null").toFile()))
            .redirectOutput(out.toFile())
            .redirectError(err.toFile())
            .start();
    try {
      boolean ended = process.waitFor(LIMIT_S, TimeUnit.SECONDS);
      String said = Files.readString(out) + Files.readString(err);
      assertThat(ended).as("ends within %d s: %s%n%s", LIMIT_S, commands, said).isTrue();
      assertThat(process.exitValue()).as("status of %s%n%s", commands, said).isZero();
      return Files.readString(out);
    } finally {
      process.descendants().forEach(ProcessHandle::destroyForcibly);
      process.destroyForcibly();
    }
  }
}
