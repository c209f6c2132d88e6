// SPDX-License-Identifier: Apache-2.0
package org.windlass.cli.documents;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.stream.Stream;
import picocli.CommandLine;
import picocli.CommandLine.Help;
import picocli.CommandLine.Model.ArgSpec;
import picocli.CommandLine.Model.CommandSpec;
import picocli.CommandLine.Model.OptionSpec;

/** The reference page of a command, made from its help, and the manual page made from that page. */
public final class CommandPage {
  /** The part from this line on is written by hand. */
  private static final String DETAILS = "## Details\n";

  private static final String NOTE =
      "<!-- This page is generated down to its details; CONTRIBUTING.md has the command. -->\n";

  private CommandPage() {}

  /** The name of its page, without an ending. */
  public static String name(CommandLine command) {
    return command.getCommandSpec().qualifiedName("-");
  }

  /** Its page, with the details of the page that is there. */
  public static String markdown(CommandLine command, String present) {
    CommandSpec spec = command.getCommandSpec();
    StringBuilder page = new StringBuilder("# " + spec.qualifiedName() + "\n\n" + NOTE + "\n");
    page.append(String.join(" ", spec.usageMessage().description())).append("\n\n## Synopsis\n\n");
    String synopsis = new Help(spec, Help.defaultColorScheme(Help.Ansi.OFF)).synopsis(0);
    block(page, "text help", synopsis.lines().map(String::strip).toList());
    page.append("\n## Options\n\n| argument or option | meaning |\n|---|---|\n");
    Stream.concat(spec.positionalParameters().stream(), spec.options().stream())
        .forEach(arg -> row(page, names(arg), description(arg)));
    if (!spec.subcommands().isEmpty()) {
      page.append("\n## Commands\n\n| command | does |\n|---|---|\n");
      spec.subcommands()
          .forEach(
              (name, each) ->
                  row(
                      page,
                      "[`" + name + "`](" + name(each) + ".md)",
                      String.join(" ", each.getCommandSpec().usageMessage().description())));
      page.append("\n## Exit status\n\n| status | meaning |\n|---|---|\n");
      for (Map.Entry<String, String> each : spec.usageMessage().exitCodeList().entrySet()) {
        row(page, each.getKey().strip(), each.getValue());
      }
    }
    page.append("\n## Examples\n\n");
    block(
        page,
        "sh help",
        Arrays.stream(spec.usageMessage().footer())
            .filter(line -> line.startsWith("  "))
            .map(String::strip)
            .toList());
    int details = present.indexOf(DETAILS);
    return page + "\n" + (details < 0 ? DETAILS : present.substring(details));
  }

  private static void block(StringBuilder page, String language, List<String> lines) {
    page.append("```").append(language).append('\n');
    page.append(String.join("\n", lines)).append("\n```\n");
  }

  private static void row(StringBuilder page, String name, String meaning) {
    page.append("| ").append(name).append(" | ").append(meaning).append(" |\n");
  }

  private static String names(ArgSpec arg) {
    if (!(arg instanceof OptionSpec option)) {
      return "`" + arg.paramLabel() + "`";
    }
    String value = option.arity().max() == 0 ? "" : "=" + option.paramLabel();
    List<String> names = new ArrayList<>(List.of(option.names()));
    names.add(names.remove(names.size() - 1) + value);
    return "`" + String.join("`, `", names) + "`";
  }

  private static String description(ArgSpec arg) {
    List<String> choices = new ArrayList<>();
    if (arg.completionCandidates() != null) {
      arg.completionCandidates().forEach(choices::add);
    }
    String text =
        String.join(" ", arg.description())
            .replace("${DEFAULT-VALUE}", String.valueOf(arg.defaultValue()))
            .replace("${COMPLETION-CANDIDATES}", String.join(", ", choices));
    boolean isListed = choices.isEmpty() || text.contains(String.join(", ", choices));
    return isListed ? text : text + " One of " + String.join(", ", choices) + ".";
  }

  /** The manual page of a page, in the language of man(7). */
  public static String manual(String name, String markdown) {
    StringBuilder page = new StringBuilder(".\\\" Generated from docs/reference/command.\n");
    page.append(".TH ").append(name.toUpperCase(Locale.ROOT)).append(" 1 \"\" Windlass\n");
    boolean isName = false;
    boolean isCode = false;
    boolean isOpen = false;
    for (String line : markdown.replaceAll("(?s)<!--.*?-->\n", "").split("\n")) {
      if (line.startsWith("```")) {
        isCode = !isCode;
        page.append(isCode ? ".PP\n.nf\n.RS 4\n" : ".RE\n.fi\n");
      } else if (isCode) {
        page.append(text(line)).append('\n');
      } else if (line.startsWith("# ")) {
        page.append(".SH NAME\n");
        isName = true;
      } else if (line.startsWith("##")) {
        page.append(line.startsWith("###") ? ".SS " : ".SH ");
        page.append(text(line.replaceFirst("#+ ", "").toUpperCase(Locale.ROOT))).append('\n');
      } else if (line.startsWith("|")) {
        List<String> cells =
            Arrays.stream(line.split("\\|"))
                .map(String::strip)
                .filter(cell -> !cell.isEmpty())
                .toList();
        if (isOpen && !line.startsWith("|---")) {
          page.append(".TP\n").append(text(cells.get(0))).append('\n');
          page.append(text(String.join("; ", cells.subList(1, cells.size())))).append('\n');
        }
        isOpen = true;
        continue;
      } else if (line.isBlank()) {
        page.append(isName ? "" : ".PP\n");
      } else if (line.startsWith("- ")) {
        page.append(".IP \\(bu 2\n").append(text(line.substring(2))).append('\n');
      } else {
        page.append(isName ? text(name) + " \\- " : "").append(text(line.strip())).append('\n');
        isName = false;
      }
      isOpen = false;
    }
    if (!name.equals("windlass")) {
      page.append(".SH SEE ALSO\n.BR windlass (1)\n");
    }
    return page.toString().replaceAll("(?<=\\n\\.SH [^\n]{1,80}\n)\\.PP\n|(\\.PP\n)+(?=\\.)", "");
  }

  private static String text(String markdown) {
    String text = markdown.replace("\\", "\\e").replace("-", "\\-");
    text = text.replaceAll("\\[([^\\]]*)\\]\\([^)]*\\)", "$1");
    text = text.replaceAll("`([^`]*)`|\\*\\*([^*]*)\\*\\*", "\\\\fB$1$2\\\\fR");
    return text.matches("[.'].*") ? "\\&" + text : text;
  }
}
