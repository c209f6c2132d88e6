// SPDX-License-Identifier: Apache-2.0
package org.windlass.cli.documents;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.fail;
import static org.junit.jupiter.api.Assertions.assertTimeoutPreemptively;
import static org.windlass.cli.documents.Treatment.How.COMPILED_AND_RUN;
import static org.windlass.cli.documents.Treatment.How.RUN_ELSEWHERE;

import java.io.IOException;
import java.lang.reflect.InvocationTargetException;
import java.net.URI;
import java.net.URL;
import java.net.URLClassLoader;
import java.nio.file.Files;
import java.time.Duration;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.TreeSet;
import java.util.regex.MatchResult;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import java.util.stream.Collectors;
import javax.tools.Diagnostic;
import javax.tools.DiagnosticCollector;
import javax.tools.JavaFileObject;
import javax.tools.SimpleJavaFileObject;
import javax.tools.StandardJavaFileManager;
import javax.tools.ToolProvider;
import org.windlass.cli.documents.scenes.InFolder;
import org.windlass.cli.documents.scenes.Launched;
import org.windlass.cli.documents.scenes.Ranks;
import org.windlass.cli.documents.scenes.Scene;

/**
 * The blocks of Java: whole programs, and fragments, each in a class that extends its {@link
 * Scene}. All are compiled at once, each at the line where it stands in its page.
 */
final class JavaBlocks {
  private static final Duration LIMIT = Duration.ofSeconds(60);
  private static final Pattern PROGRAM =
      Pattern.compile("(?ms)^(?:(?:public|final) )*class (\\w+).*^ +public static void main\\(");
  private static final Pattern IMPORT = Pattern.compile("(?m)^import .*;$");
  private static final String SCENES = Ranks.class.getPackageName();

  /** What fragments may use without its package; each line of it goes before a class. */
  private static final String IMPORTS =
      """
      import static java.time.Duration.*;
      import static org.windlass.DType.*;
      import static org.windlass.ReduceOp.*;
      import static org.windlass.layout.Placement.*;
      import java.nio.*;
      import java.nio.file.*;
      import java.time.*;
      import java.util.*;
      import org.windlass.*;
      import org.windlass.checkpoint.*;
      import org.windlass.error.*;
      import org.windlass.experts.*;
      import org.windlass.gpu.*;
      import org.windlass.job.*;
      import org.windlass.kernel.*;
      import org.windlass.launch.*;
      import org.windlass.layout.*;
      import org.windlass.link.*;
      import org.windlass.manifest.*;
      import org.windlass.plan.*;
      import org.windlass.report.*;
      import org.windlass.reshard.*;
      import org.windlass.transfer.*;
      """
          .replace('\n', ' ');

  private static final List<String> FRAGMENTS = List.of("fragment", "second");

  /** A class that is made of blocks; {@code scene} is null where it is a whole program. */
  private record Unit(String name, Class<?> scene, List<Block> blocks) {
    String source() {
      StringBuilder source = new StringBuilder("\n".repeat(blocks.get(0).line() - 1));
      if (scene == null) {
        return source.append('\n').append(blocks.get(0).text()).toString();
      }
      List<MatchResult> own =
          blocks.stream().flatMap(block -> IMPORT.matcher(block.text()).results()).toList();
      source
          .append(IMPORTS)
          .append(own.stream().map(MatchResult::group).collect(Collectors.joining(" ")))
          .append("final class " + name + " extends " + scene.getName() + " {")
          .append(" public static void main(String[] arguments) throws Exception {")
          .append(" new " + name + "().play(); }");
      int line = blocks.get(0).line();
      for (int i = 0; i < blocks.size(); i++) {
        Block block = blocks.get(i);
        source
            .append("\n".repeat(block.line() - line))
            .append(" @Override protected void " + FRAGMENTS.get(i) + "() throws Exception {\n")
            .append(IMPORT.matcher(block.text()).replaceAll(""))
            .append("}");
        line = block.line() + 1 + (int) block.text().lines().count();
      }
      return source.append("}").toString();
    }
  }

  private final Map<Block, Unit> units = new LinkedHashMap<>();
  private final Map<Block, String> complaints = new LinkedHashMap<>();
  private final Map<Unit, Optional<Throwable>> played = new HashMap<>();
  private final List<Block> all;
  private final Sandbox sandbox;

  /** Compiles those of {@code blocks}, which are all there are, into the folder of the sandbox. */
  JavaBlocks(List<Block> blocks, Sandbox sandbox) throws IOException {
    this.all = blocks;
    this.sandbox = sandbox;
    List<Block> own = blocks.stream().filter(JavaBlocks::isCode).toList();
    for (int at = 0; at < own.size(); ) {
      int end = at + 1;
      while (end < own.size()
          && !own.get(at).word().isEmpty()
          && own.get(end).page().equals(own.get(at).page())
          && own.get(end).word().equals(own.get(at).word())) {
        end++;
      }
      add(own.subList(at, end));
      at = end;
    }
    compileAll();
  }

  /** What is quoted stands in a source that is compiled elsewhere. */
  private static boolean isCode(Block block) {
    return block.language().equals("java") && !block.word().equals("quoted");
  }

  private void add(List<Block> blocks) {
    Block first = blocks.get(0);
    Matcher program = PROGRAM.matcher(first.text());
    if (program.find()) {
      blocks.forEach(block -> units.put(block, new Unit(programName(block), null, List.of(block))));
      return;
    }
    Class<?> scene = scene(first.word());
    if (scene == null) {
      blocks.forEach(block -> complaints.put(block, noScene(block.word())));
    } else if (blocks.size() > FRAGMENTS.size()) {
      blocks.forEach(
          block ->
              complaints.put(
                  block,
                  "a scene has "
                      + FRAGMENTS.size()
                      + " blocks at most: join some of these, or add a method to Scene and its name"
                      + " to FRAGMENTS"));
    } else {
      String name =
          Launched.class.isAssignableFrom(scene)
              ? scene.getSimpleName()
              : scene.getSimpleName() + "_" + first.place().replaceAll("\\W+", "_");
      Unit unit = new Unit(name, scene, List.copyOf(blocks));
      blocks.forEach(block -> units.put(block, unit));
    }
  }

  private static String programName(Block block) {
    Matcher name = PROGRAM.matcher(block.text());
    return name.find() ? name.group(1) : "";
  }

  private static Class<?> scene(String word) {
    try {
      return word.isEmpty()
          ? Ranks.class
          : Class.forName(SCENES + "." + word).asSubclass(Scene.class);
    } catch (ClassNotFoundException | ClassCastException none) {
      return null;
    }
  }

  private static String noScene(String word) {
    return "there is no scene '"
        + word
        + "': name a class of "
        + SCENES
        + ", or write one whose fields are the names that the block doesn't declare; leave the word"
        + " out where comm alone is around it, 'quoted' stands behind java where it is a part of a"
        + " source, and a whole program has a class with a main";
  }

  /** Compiles all, or where some of them fail, the others. */
  private void compileAll() throws IOException {
    Set<Unit> left = new LinkedHashSet<>(units.values());
    while (!left.isEmpty() && !compile(left)) {
      boolean fewer = left.removeIf(unit -> complaints.containsKey(unit.blocks.get(0)));
      assertThat(fewer).as("javac says which class keeps the others from being compiled").isTrue();
    }
  }

  /** Whether these are compiled; what keeps them from it is in the complaints. */
  private boolean compile(Set<Unit> files) throws IOException {
    DiagnosticCollector<JavaFileObject> diagnostics = new DiagnosticCollector<>();
    var compiler = ToolProvider.getSystemJavaCompiler();
    try (StandardJavaFileManager manager =
        compiler.getStandardFileManager(diagnostics, null, null)) {
      boolean compiled =
          compiler
              .getTask(
                  null,
                  manager,
                  diagnostics,
                  List.of(
                      "-proc:none",
                      "-cp",
                      System.getProperty("java.class.path"),
                      "-d",
                      sandbox.folder().toString()),
                  null,
                  files.stream().map(Source::new).toList())
              .call();
      if (compiled) {
        return true;
      }
    }
    for (Diagnostic<? extends JavaFileObject> diagnostic : diagnostics.getDiagnostics()) {
      if (diagnostic.getKind() == Diagnostic.Kind.ERROR) {
        assertThat(diagnostic.getSource()).as(diagnostic.toString()).isInstanceOf(Source.class);
        Unit unit = ((Source) diagnostic.getSource()).unit;
        String said =
            unit.blocks.get(0).page()
                + ":"
                + diagnostic.getLineNumber()
                + ": "
                + diagnostic.getMessage(Locale.ROOT);
        unit.blocks.forEach(block -> complaints.merge(block, said, (a, b) -> a + "\n" + b));
      }
    }
    return false;
  }

  private static final class Source extends SimpleJavaFileObject {
    private final Unit unit;

    Source(Unit unit) {
      super(URI.create("string:///" + unit.blocks.get(0).page()), Kind.SOURCE);
      this.unit = unit;
    }

    @Override
    public CharSequence getCharContent(boolean ignoreEncodingErrors) {
      return unit.source();
    }

    /** Classes have the names that they need, and the source that of its page. */
    @Override
    public boolean isNameCompatible(String simpleName, Kind kind) {
      return kind == Kind.SOURCE;
    }
  }

  /** Runs the block, together with those of its scene, unless another one runs it. */
  Treatment treat(Block block) throws Exception {
    if (complaints.containsKey(block)) {
      fail("%s: %s", block, complaints.get(block));
    }
    Unit unit = units.get(block);
    for (Block commands : all) {
      if (commands.language().equals("sh")
          && commands.page().equals(block.page())
          && Pattern.compile("\\bjava .*\\b" + unit.name + "\\b").matcher(commands.text()).find()) {
        return new Treatment(RUN_ELSEWHERE, "compiled; run by " + commands.place());
      }
    }
    assertThat(unit.scene != null && Launched.class.isAssignableFrom(unit.scene))
        .as("%s: a block of commands on its page has to run 'java %s'", block, unit.name)
        .isFalse();
    Optional<Throwable> failure = played.computeIfAbsent(unit, this::play);
    if (failure.isPresent()) {
      throw new AssertionError(
          block + ": " + unit.name + " failed: " + failure.get(), failure.get());
    }
    return new Treatment(COMPILED_AND_RUN, unit.name);
  }

  private Optional<Throwable> play(Unit unit) {
    try {
      if (unit.scene != null && InFolder.class.isAssignableFrom(unit.scene)) {
        sandbox.checkpoint("step-1000");
        sandbox.run("rm -rf serving; java " + unit.name);
      } else {
        assertTimeoutPreemptively(LIMIT, () -> main(unit), unit.name + " hangs");
      }
      return Optional.empty();
    } catch (Exception | AssertionError e) {
      return Optional.of(e);
    }
  }

  private void main(Unit unit) throws Exception {
    URL[] folder = {sandbox.folder().toUri().toURL()};
    try (URLClassLoader loader = new URLClassLoader(folder, JavaBlocks.class.getClassLoader())) {
      var main = loader.loadClass(unit.name).getDeclaredMethod("main", String[].class);
      main.setAccessible(true);
      main.invoke(null, (Object) new String[0]);
    } catch (InvocationTargetException e) {
      if (e.getCause() instanceof Error error) {
        throw error;
      }
      throw (Exception) e.getCause();
    }
  }

  /** The scenes that no block names. */
  Set<String> unused(Set<String> scenes) {
    Set<String> unused = new TreeSet<>(scenes);
    units.values().stream()
        .filter(unit -> unit.scene != null)
        .forEach(unit -> unused.remove(unit.scene.getSimpleName()));
    return unused;
  }

  /** The names of what {@link #treat} can play. */
  static Set<String> scenes() throws IOException {
    Set<String> names = new TreeSet<>();
    try (var files =
        Files.list(Pages.ROOT.resolve("tests/java/cli/org/windlass/cli/documents/scenes"))) {
      files.map(file -> file.getFileName().toString().replace(".java", "")).forEach(names::add);
    }
    names.removeAll(List.of("Scene", "Launched", "InFolder", "Ranks"));
    return names;
  }
}
