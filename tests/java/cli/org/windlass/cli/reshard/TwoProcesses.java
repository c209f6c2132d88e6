// SPDX-License-Identifier: Apache-2.0
package org.windlass.cli.reshard;

import static org.assertj.core.api.Assertions.assertThat;

import java.io.BufferedReader;
import java.io.BufferedWriter;
import java.io.IOException;
import java.io.InputStreamReader;
import java.io.UncheckedIOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashMap;
import java.util.Iterator;
import java.util.List;
import java.util.Map;
import java.util.stream.Stream;
import org.windlass.CommunicatorOptions;
import org.windlass.DType;
import org.windlass.LocalGroup;
import org.windlass.cli.ChildCommand;
import org.windlass.cli.run.RankVariables;
import org.windlass.cli.run.RunFolder;
import org.windlass.layout.Layout;
import org.windlass.plan.TransferMode;
import org.windlass.reshard.Reshard;
import org.windlass.reshard.ReshardResult;

/**
 * This process and another, of four ranks each, which run one reshard after the other as the
 * command's arguments ask for.
 */
final class TwoProcesses implements AutoCloseable {
  static final int RANKS_EACH = 8;

  private static final Duration START = Duration.ofSeconds(60);

  private final RunFolder token = new RunFolder();
  private final RankVariables variables;
  private final Process other;
  private final BufferedWriter asked;
  private final BufferedReader said;
  private final LocalGroup group;

  TwoProcesses() {
    try {
      variables = new RankVariables(2, token);
      ProcessBuilder builder =
          ChildCommand.program(
              TwoProcesses.class, System.getProperty("org.windlass.library.path"));
      builder.environment().putAll(variables.of(1));
      other = builder.redirectError(ProcessBuilder.Redirect.INHERIT).start();
      asked = other.outputWriter();
      said = other.inputReader();
      Map<String, String> own = new HashMap<>(System.getenv());
      own.putAll(variables.of(0));
      group = join(own);
    } catch (IOException fault) {
      throw new UncheckedIOException(fault);
    }
  }

  private static LocalGroup join(Map<String, String> variables) {
    return LocalGroup.fromEnvironment(
        variables, RANKS_EACH, CommunicatorOptions.defaults(), START);
  }

  LocalGroup group() {
    return group;
  }

  /** The process number of the other one. */
  long other() {
    return other.pid();
  }

  /** Stops the other one by SIGSTOP. */
  void stop() {
    try {
      new ProcessBuilder("kill", "-STOP", "" + other.pid()).start().waitFor();
    } catch (IOException | InterruptedException fault) {
      throw new IllegalStateException(fault);
    }
  }

  /** Has the other one begin. */
  void ask(List<?> arguments) throws IOException {
    asked.write(String.join("\t", arguments.stream().map(Object::toString).toList()));
    asked.newLine();
    asked.flush();
  }

  /** What became of it there. */
  String answer() throws IOException {
    return said.readLine();
  }

  /** Runs the same in both, which has to succeed. */
  ReshardResult run(List<?> arguments) throws IOException {
    ask(arguments);
    ReshardResult result = of(arguments).run(group);
    assertThat(answer()).isEqualTo("done");
    return result;
  }

  /**
   * Runs in both what the command has run with threads, with another OUT, and compares what was
   * written, byte for byte.
   */
  void compare(List<?> arguments, Path out) throws IOException {
    Path again = out.resolveSibling("again-" + out.getFileName());
    List<Object> words = new ArrayList<>(arguments);
    words.replaceAll(word -> word.equals(out) ? again : word);
    run(words.subList(1, words.size()));
    assertSame(again, out);
  }

  /** Compares files, or folders of files, byte for byte. */
  static void assertSame(Path found, Path expected) throws IOException {
    if (Files.isRegularFile(expected)) {
      assertThat(Files.mismatch(found, expected)).as("%s", expected).isEqualTo(-1);
      return;
    }
    List<String> names = names(expected);
    assertThat(names(found)).isEqualTo(names);
    for (String name : names) {
      assertSame(found.resolve(name), expected.resolve(name));
    }
  }

  private static List<String> names(Path folder) throws IOException {
    try (Stream<Path> files = Files.list(folder)) {
      return files.map(file -> file.getFileName().toString()).sorted().toList();
    }
  }

  /** A reshard with the settings of the command's arguments. */
  static Reshard of(List<?> arguments) {
    Map<String, String> given = new HashMap<>();
    List<Path> paths = new ArrayList<>();
    for (Iterator<?> words = arguments.iterator(); words.hasNext(); ) {
      String word = words.next().toString();
      if (word.equals("--verify")) {
        given.put(word, "");
      } else if (word.startsWith("--")) {
        given.put(word, words.next().toString());
      } else {
        paths.add(Path.of(word));
      }
    }
    Reshard reshard =
        given.containsKey("--from")
            ? Reshard.from(Layout.parse(given.remove("--from")))
            : Reshard.fromStoredLayouts();
    reshard.in(paths.get(0)).out(paths.get(1));
    given.forEach(
        (name, value) -> {
          switch (name) {
            case "--to" -> reshard.to(value);
            case "--rules" -> reshard.rules(Path.of(value));
            case "--wire" -> reshard.wire(DType.parse(value));
            case "--dtype" -> reshard.dtype(DType.parse(value));
            case "--bucket-bytes" -> reshard.bucketBytes(Long.parseLong(value));
            case "--max-shard-bytes" -> reshard.maxShardBytes(Long.parseLong(value));
            case "--deadline" -> reshard.deadline(Duration.ofSeconds(Long.parseLong(value)));
            case "--mode" -> reshard.mode(TransferMode.parse(value));
            case "--verify" -> reshard.verify();
            default -> throw new AssertionError(name);
          }
        });
    return reshard;
  }

  /** The other process: it runs each line that it is given, and says what became of it. */
  public static void main(String[] none) throws IOException {
    BufferedReader lines = new BufferedReader(new InputStreamReader(System.in));
    try (LocalGroup group = join(System.getenv())) {
      for (String line = lines.readLine(); line != null; line = lines.readLine()) {
        try {
          of(Arrays.asList(line.split("\t"))).run(group);
          System.out.println("done");
        } catch (RuntimeException failure) {
          String text = failure.getClass().getSimpleName() + ": " + failure.getMessage();
          System.out.println(text.replaceAll("\\s+", " "));
        }
      }
    }
  }

  @Override
  public void close() throws IOException {
    group.close();
    other.destroyForcibly();
    other.onExit().join();
    variables.close();
    token.close();
  }
}
