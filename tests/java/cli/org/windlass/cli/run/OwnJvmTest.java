// SPDX-License-Identifier: Apache-2.0
package org.windlass.cli.run;

import static org.assertj.core.api.Assertions.assertThat;

import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.Map;
import java.util.concurrent.TimeUnit;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;

/** What a JVM's like is told, and what not. */
@Timeout(120)
class OwnJvmTest {
  private static final String SECRET = "word \"of\" \\ honour";

  @TempDir Path folder;

  @Test
  void whatOneJvmCanHaveAloneStaysWithIt() {
    List<String> options =
        List.of(
            "-Xmx64m",
            "-agentlib:jdwp=transport=dt_socket,server=y,address=5005",
            "-javaagent:a.jar",
            "-Dcom.sun.management.jmxremote.port=7091",
            "-Dcom.sun.management.config.file=m",
            "-XX:StartFlightRecording:filename=a.jfr",
            "-Dcom.sun=1");
    assertThat(OwnJvm.passedOn(options, Map.of())).containsExactly("-Xmx64m", "-Dcom.sun=1");
  }

  @Test
  void whatTheEnvironmentHasIsNotToldTwice() {
    Map<String, String> environment =
        Map.of(
            "JAVA_TOOL_OPTIONS", " -Dpassword='of a store'  -Xss1m ",
            "JDK_JAVA_OPTIONS", "\"-Da=b c\" -Xint");
    List<String> options =
        List.of("-Dpassword=of a store", "-Xss1m", "-Da=b c", "-Xint", "-Xmx64m", "-Xss1m");
    assertThat(OwnJvm.passedOn(options, environment)).containsExactly("-Xmx64m", "-Xss1m");
  }

  /** Starts its like, and prints with what command line. */
  static final class Asks {
    public static void main(String[] arguments) throws Exception {
      int status;
      try (RunFolder folder = new RunFolder()) {
        OwnJvm jvm = new OwnJvm(folder);
        List<String> command = jvm.command(List.of("-Dmore=1"), Says.class, List.of("x y"));
        System.out.println("command " + command);
        System.out.flush();
        status = new ProcessBuilder(command).inheritIO().start().waitFor();
      }
      Runtime.getRuntime().halt(status); // as where a signal ends it: no hook runs behind this
    }
  }

  static final class Says {
    public static void main(String[] arguments) {
      System.out.println(
          String.join(
              "|", System.getProperty("secret"), System.getProperty("more"), arguments[0]));
    }
  }

  private String said(Path temporary, String option) throws IOException, InterruptedException {
    Process process =
        new ProcessBuilder(
                Path.of(System.getProperty("java.home"), "bin", "java").toString(),
                "-Xmx64m",
                "-Djava.io.tmpdir=" + temporary,
                option,
                "-cp",
                System.getProperty("java.class.path"),
                Asks.class.getName())
            .redirectError(ProcessBuilder.Redirect.INHERIT)
            .start();
    String said = new String(process.getInputStream().readAllBytes(), StandardCharsets.UTF_8);
    assertThat(process.waitFor(60, TimeUnit.SECONDS)).isTrue();
    assertThat(process.exitValue()).isZero();
    return said;
  }

  @Test
  void whatAFileHidesStaysHidden() throws Exception {
    Path file = folder.resolve("options");
    String quoted = SECRET.replace("\\", "\\\\").replace("\"", "\\\"");
    Files.writeString(file, "\"-Dsecret=" + quoted + "\"\n");
    Path temporary = Files.createDirectory(folder.resolve("tmp"));
    String said = said(temporary, "@" + file);
    String command = said.lines().findFirst().orElseThrow();
    assertThat(command).doesNotContain("honour").contains("-Dmore=1", "Says, x y]");
    assertThat(said).endsWith(SECRET + "|1|x y\n");
    try (Stream<Path> left = Files.list(temporary)) {
      assertThat(left.filter(path -> path.toString().contains("windlass"))).isEmpty();
    }
  }

  @Test
  void whatStandsOnTheCommandLineIsToldThere() throws Exception {
    String said = said(folder, "-Dsecret=none");
    assertThat(said).contains("-Dsecret=none, ").doesNotContain("@").endsWith("none|1|x y\n");
  }
}
