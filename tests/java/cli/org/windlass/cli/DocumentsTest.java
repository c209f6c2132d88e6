// SPDX-License-Identifier: Apache-2.0
package org.windlass.cli;

import static org.assertj.core.api.Assertions.assertThat;

import java.io.IOException;
import java.lang.reflect.RecordComponent;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Locale;
import java.util.Set;
import java.util.TreeSet;
import java.util.regex.MatchResult;
import java.util.regex.Pattern;
import java.util.stream.Collectors;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;
import org.windlass.CommunicatorOptions;
import org.windlass.cli.documents.Pages;

/** The pages against the sources: messages, settings, links and names; their blocks are BlocksTest's. */
class DocumentsTest {
  private static final Path ROOT = Pages.ROOT;

  /** The files below, without what was built. */
  private static List<Path> sources(String place, String... endings) throws IOException {
    try (Stream<Path> files = Files.walk(ROOT.resolve(place))) {
      return files
          .filter(Files::isRegularFile)
          .filter(file -> !ROOT.relativize(file).toString().contains("target/"))
          .filter(file -> endings.length == 0 || Stream.of(endings).anyMatch(file.toString()::endsWith))
          .toList();
    }
  }

  private static String all(List<Path> files) throws IOException {
    StringBuilder text = new StringBuilder();
    for (Path file : files) {
      text.append(Files.readString(file)).append('\n');
    }
    return text.toString();
  }

  @Test
  void theNumbersThatTwoEndsCompareAreThoseOfTheSources() throws IOException {
    Pattern row =
        Pattern.compile("\\| [a-zA-Z ]+ \\| (\\d+) \\| [^|]+ \\| `(?:(\\w+)\\.)?(\\w+)` \\|");
    String page = Files.readString(ROOT.resolve("docs/reference/compatibility.md"));
    List<MatchResult> rows = row.matcher(page).results().toList();
    assertThat(rows).hasSize(8);
    for (MatchResult each : rows) {
      String number = each.group(1);
      String name = each.group(3);
      String header = all(sources("native", "/windlass.h"));
      String declared =
          each.group(2) == null
              ? header.replace("#define " + name + " " + number + "u", name + " = " + number + ";")
              : all(sources("java", "/" + each.group(2) + ".java"));
      assertThat(declared).as(each.group()).contains(name + " = " + number + ";");
    }
  }

  @Test
  void everyQuotedMessageStandsInTheSources() throws IOException {
    List<Path> files = new ArrayList<>(sources("java", ".java"));
    files.addAll(sources("native", ".cpp", ".h", ".py"));
    files.addAll(sources("scripts"));
    // Adjacent literals are one; what formats fill in is any text.
    String text =
        all(files).replaceAll("\"\\s*\\+?\\s*\"", "").replaceAll("%[.0-9]*(l*[dux]|z[ux]|[fs])", "…");
    List<String> missing = new ArrayList<>();
    List<String> quoted =
        Files.readAllLines(ROOT.resolve("docs/troubleshooting.md")).stream()
            .filter(line -> line.startsWith("> "))
            .map(line -> line.substring(2))
            .toList();
    for (String message : quoted) {
      for (String part : message.split("…")) {
        String words = part.strip();
        if (words.length() > 2 && !stands(text, words)) {
          missing.add(words + "  (of: " + message + ")");
        }
      }
    }
    assertThat(quoted).hasSizeGreaterThan(30);
    assertThat(missing).isEmpty();
  }

  /** Whether the words stand there, as they are or put together from a format and a constant. */
  private static boolean stands(String text, String words) {
    return text.contains(words)
        || Stream.of(words.split("linux-x86_64|: (?=it )|\\. (?=See )|java\\.library"))
            .map(String::strip)
            .allMatch(text::contains);
  }

  @Test
  void everySettingStandsInThePages() throws IOException {
    String main =
        all(sources("java", ".java", "bin/windlass")) + all(sources("native", ".cpp"))
            + all(sources("examples", ".java")) + all(sources("scripts"));
    Set<String> settings = new TreeSet<>();
    Stream.of(
            "\"(org\\.windlass\\.(?!internal\")[a-z.]+)\"",
            "\"(WINDLASS_[A-Z_]+)\"",
            "\\$\\{?(WINDLASS_[A-Z_]+)")
        .flatMap(form -> Pattern.compile(form).matcher(main).results())
        .map(result -> result.group(1))
        .filter(name -> !Files.isDirectory(ROOT.resolve("java/core/src/main/java/" + name.replace('.', '/'))))
        .forEach(settings::add);
    assertThat(settings)
        .contains("org.windlass.leaks", "WINDLASS_ISA", "WINDLASS_JAVA_OPTIONS", "WINDLASS_LIBRARY_PATH");
    String page = Files.readString(ROOT.resolve("docs/reference/settings.md"));
    assertThat(settings).allMatch(name -> page.contains("`" + name + "`"), "stands in settings.md");
    for (RecordComponent option : CommunicatorOptions.class.getRecordComponents()) {
      assertThat(page).contains("\n| `" + option.getName() + "` |");
    }
    Set<String> ofTests = new TreeSet<>();
    Pattern.compile("(?:getBoolean|getInteger|getLong)\\(\\s*\"(windlass\\.[a-z.]+)\"")
        .matcher(all(sources("tests/java", ".java")))
        .results()
        .forEach(result -> ofTests.add(result.group(1)));
    String contributing = Files.readString(ROOT.resolve("CONTRIBUTING.md"));
    assertThat(ofTests).contains("windlass.long").allMatch(contributing::contains, "stands in CONTRIBUTING.md");
  }

  @Test
  void everyLinkLeadsSomewhere() throws IOException {
    List<String> broken = new ArrayList<>();
    for (Path page : Pages.all()) {
      for (MatchResult link :
          Pattern.compile("\\]\\(([^)\\s]+)\\)").matcher(Files.readString(page)).results().toList()) {
        String[] target = link.group(1).split("#", 2);
        if (target[0].startsWith("http")) {
          continue;
        }
        Path file = target[0].isEmpty() ? page : page.resolveSibling(target[0]).normalize();
        if (!Files.exists(file) || (target.length == 2 && !anchors(file).contains(target[1]))) {
          broken.add(ROOT.relativize(page) + ": " + link.group(1));
        }
      }
    }
    assertThat(broken).isEmpty();
  }

  /**
   * A name is a path from the root, or the end of one; {@code ...} and {@code *} stand for any text. Not looked for: what a build
   * makes, and files that a tutorial has its reader write.
   */
  @Test
  void everyFileThatIsNamedExists() throws IOException {
    List<String> folders =
        List.of("native", "kernels", "java", "tests", "scripts", "examples", "cmake", "docs");
    List<String> files = new ArrayList<>();
    for (String folder : folders) {
      sources(folder).forEach(file -> files.add("/" + ROOT.relativize(file)));
    }
    Pattern name =
        Pattern.compile(
            "`((?:" + String.join("|", folders) + ")/[^`\\s]*?|[\\w./*-]+\\.(?:java|cpp|cu|h))/?`");
    List<String> missing = new ArrayList<>();
    int named = 0;
    for (Path page : Pages.all()) {
      for (MatchResult found : name.matcher(Files.readString(page)).results().toList()) {
        String text = found.group(1).replaceFirst("/$", "");
        if (text.contains("/target") || page.getParent().endsWith("tutorials")) {
          continue;
        }
        named++;
        Pattern end =
            Pattern.compile(
                ".*/"
                    + Stream.of(text.split("\\.\\.\\.|\\*", -1))
                        .map(Pattern::quote)
                        .collect(Collectors.joining(".*"))
                    + "(/.*)?");
        if (files.stream().noneMatch(file -> end.matcher(file).matches())) {
          missing.add(ROOT.relativize(page) + ": " + text);
        }
      }
    }
    assertThat(named).isGreaterThan(100);
    assertThat(missing).isEmpty();
  }

  private static List<String> anchors(Path page) throws IOException {
    return Files.readAllLines(page).stream()
        .filter(line -> line.matches("#+ .*"))
        .map(line -> line.replaceFirst("#+ ", "").toLowerCase(Locale.ROOT))
        .map(line -> line.replaceAll("[^a-z0-9 _-]", "").replace(' ', '-'))
        .toList();
  }

  @Test
  void everyNameOfTheCAbiStandsInItsHeaders() throws IOException {
    String headers = all(sources("native/include", ".h"));
    Set<String> unknown = new TreeSet<>();
    for (Path page : Pages.all()) {
      if (page.endsWith("CHANGELOG.md")) {
        continue; // it tells of names that were
      }
      Pattern.compile("\\b(?:wl|WL)_\\w+\\b")
          .matcher(Files.readString(page))
          .results()
          .map(MatchResult::group)
          .filter(name -> !Pattern.compile("\\b" + name + "\\b").matcher(headers).find())
          .forEach(unknown::add);
    }
    assertThat(unknown).containsExactly("wl_noun_verb"); // the form of such names
  }
}
