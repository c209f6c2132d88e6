// SPDX-License-Identifier: Apache-2.0
package org.windlass.etcd;

import static org.assertj.core.api.Assertions.assertThat;

import java.io.BufferedReader;
import java.io.IOException;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.concurrent.TimeUnit;

/** A JVM that runs a main class of the tests with some variables, and ends with this. */
final class Child implements AutoCloseable {
  private final Process process;
  private final BufferedReader said;

  Child(Class<?> main, Map<String, String> variables, String... arguments) throws IOException {
    List<String> command =
        new ArrayList<>(
            List.of(
                Path.of(System.getProperty("java.home"), "bin", "java").toString(),
                "-Xmx128m",
                "-XX:+UseSerialGC",
                "-XX:TieredStopAtLevel=1",
                "-XX:-UsePerfData",
                "-XX:+UseTransparentHugePages",
                "--enable-native-access=ALL-UNNAMED",
                "-Dorg.windlass.library.path=" + System.getProperty("org.windlass.library.path"),
                "-cp",
                System.getProperty("java.class.path"),
                main.getName()));
    command.addAll(List.of(arguments));
    ProcessBuilder builder = new ProcessBuilder(command).redirectErrorStream(true);
    builder.environment().clear();
    builder.environment().putAll(variables);
    process = builder.start();
    said = process.inputReader();
  }

  /** The next line that it says and that begins so; what it says before is left out. */
  String line(String begin) throws IOException {
    StringBuilder all = new StringBuilder();
    for (String line = said.readLine(); line != null; line = said.readLine()) {
      if (line.startsWith(begin)) {
        return line;
      }
      all.append(line).append('\n');
    }
    throw new AssertionError("it did not say '" + begin + "' but: " + all);
  }

  /** SIGKILL. */
  void kill() {
    process.destroyForcibly();
    process.onExit().orTimeout(60, TimeUnit.SECONDS).join();
  }

  void awaitEnd() throws InterruptedException {
    assertThat(process.waitFor(60, TimeUnit.SECONDS)).isTrue();
    assertThat(process.exitValue()).isZero();
  }

  @Override
  public void close() {
    kill();
  }
}
