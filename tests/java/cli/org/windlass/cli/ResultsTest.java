// SPDX-License-Identifier: Apache-2.0
package org.windlass.cli;

import static org.assertj.core.api.Assertions.assertThat;

import java.io.IOException;
import java.io.PrintWriter;
import java.io.StringWriter;
import java.io.Writer;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.MethodSource;
import org.windlass.testing.SafetensorsBytes;

/** Standard output that takes nothing, or nothing more. */
@Timeout(120)
class ResultsTest {
  /** Takes some characters, then fails each time. */
  private static final class Full extends Writer {
    private final String reason;
    private int room;

    Full(String reason, int room) {
      this.reason = reason;
      this.room = room;
    }

    @Override
    public void write(char[] text, int from, int length) throws IOException {
      room -= length;
      flush();
    }

    @Override
    public void flush() throws IOException {
      if (room < 0) {
        throw new IOException(reason);
      }
    }

    @Override
    public void close() {}
  }

  private static Cli run(Writer out, String... arguments) {
    StringWriter err = new StringWriter();
    int status = Main.run(out, new PrintWriter(err), arguments);
    return new Cli(status, "", err.toString());
  }

  static Stream<List<String>> printing() {
    return Stream.of(
        List.of("--help"),
        List.of("--version"),
        List.of("plan", "--help"),
        List.of("doctor"),
        List.of("doctor", "--json"),
        List.of("example"),
        List.of("example", "broadcast"),
        List.of("plan", "--from", "2:S0", "--to", "2:R", "--shape", "4", "--dtype", "u8"),
        List.of("bench", "put", "--bytes", "4,8", "--seconds", "0.01"),
        List.of("demo", "--layers", "1"));
  }

  @ParameterizedTest
  @MethodSource("printing")
  void whatCannotBeWrittenIsStatusSeven(List<String> arguments) {
    Cli failed = run(new Full("No space left on device", 3), arguments.toArray(String[]::new));
    assertThat(failed.status()).as(failed.err()).isEqualTo(7);
    assertThat(failed.err()).contains("standard output cannot be written: No space left on device");
    assertThat(failed.err().lines()).hasSize(arguments.contains("--json") ? 1 : 2);
  }

  @Test
  void aReaderThatWantsNoMoreIsNoErrorToTell() {
    Cli left = run(new Full("Broken pipe", 3), "doctor");
    assertThat(left.status()).isEqualTo(7);
    assertThat(left.err()).isEmpty();
  }

  @Test
  void anErrorBeforeThatIsToldAsItIs() {
    Cli wrong = run(new Full("No space left on device", 0), "plan", "--from", "x");
    assertThat(wrong.status()).isEqualTo(2);
    assertThat(wrong.err()).contains("windlass: InvalidArgument: ");
  }

  @Test
  void aReshardWhoseResultCannotBeToldIsThere(@TempDir Path folder) throws IOException {
    Path in = SafetensorsBytes.bytes(folder.resolve("in.safetensors"), "w", new byte[4]);
    Path out = folder.resolve("out");
    Cli failed =
        run(
            new Full("No space left on device", 0),
            "reshard", "--from", "1:R", "--to", "2:S0", in.toString(), out.toString());
    assertThat(failed.status()).as(failed.err()).isEqualTo(7);
    assertThat(failed.err()).contains("files that the command wrote are complete");
    assertThat(out.resolve("rank-00001.safetensors")).exists();
  }

  @Test
  void aDeviceAndAPipeOfTheSystem() throws Exception {
    assertThat(status("> /dev/full")).isEqualTo(7);
    assertThat(status("| true; exit ${PIPESTATUS[0]}")).isEqualTo(7);
  }

  private static int status(String redirection) throws Exception {
    // More than a pipe holds.
    List<String> child =
        ChildCommand.of("plan", "--from", "64:S0", "--to", "64:S1", "--shape", "64x64", "--dtype", "u8")
            .command();
    List<String> shell = new ArrayList<>(List.of("bash", "-c", "\"$@\" " + redirection, "-"));
    shell.addAll(child);
    Process process =
        new ProcessBuilder(shell)
            .redirectOutput(ProcessBuilder.Redirect.DISCARD)
            .redirectError(ProcessBuilder.Redirect.DISCARD)
            .start();
    return process.waitFor();
  }
}
