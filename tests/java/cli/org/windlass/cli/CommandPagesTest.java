// SPDX-License-Identifier: Apache-2.0
package org.windlass.cli;

import static org.assertj.core.api.Assertions.assertThat;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.MethodSource;
import org.windlass.cli.documents.CommandPage;
import org.windlass.cli.documents.Pages;
import picocli.CommandLine;

/** The pages of the command are those that its help makes; a property has this test write them. */
class CommandPagesTest {
  private static final boolean WRITES = Boolean.getBoolean("windlass.pages");

  private static final Path REFERENCE = Pages.ROOT.resolve("docs/reference/command");
  private static final Path MANUAL =
      Pages.ROOT.resolve("java/cli/src/main/distribution/share/man/man1");

  static Stream<CommandLine> commands() {
    return HelpTest.commands();
  }

  private static String read(Path file) throws IOException {
    return Files.exists(file) ? Files.readString(file) : "";
  }

  private static void check(Path file, String page) throws IOException {
    if (WRITES) {
      Files.createDirectories(file.getParent());
      Files.writeString(file, page);
    }
    assertThat(read(file)).as("%s; -Dwindlass.pages=true writes it", file).isEqualTo(page);
  }

  @ParameterizedTest
  @MethodSource("commands")
  void pagesAreCurrent(CommandLine command) throws IOException {
    String name = CommandPage.name(command);
    Path file = REFERENCE.resolve(name + ".md");
    String page = CommandPage.markdown(command, read(file));
    check(file, page);
    check(MANUAL.resolve(name + ".1"), CommandPage.manual(name, page));
    assertThat(page).doesNotEndWith("## Details\n");
  }

  @Test
  void noOtherPagesStandThere() throws IOException {
    for (Path folder : new Path[] {REFERENCE, MANUAL}) {
      try (Stream<Path> files = Files.list(folder)) {
        assertThat(files.map(file -> file.getFileName().toString().replaceFirst("\\.(md|1)$", "")))
            .containsExactlyInAnyOrderElementsOf(commands().map(CommandPage::name).toList());
      }
    }
  }

  @Test
  void aManualPageKeepsWhatAPageSays() {
    String page = "# windlass x\n\nDoes it.\n\n| a | b |\n|---|---|\n| `-n`, `--ranks=N` | Ranks. |\n\nMore.\n\n"
        + "## Details\n\nSee [`plan`](plan.md).\n\n- one\n\n```sh\n.\\n\n```\n";
    assertThat(CommandPage.manual("windlass-x", page))
        .contains(".SH NAME\nwindlass\\-x \\- Does it.\n", ".TP\n\\fB\\-n\\fR, \\fB\\-\\-ranks=N\\fR\nRanks.\n.PP\nMore.\n")
        .contains(".SH DETAILS\nSee \\fBplan\\fR.\n.IP \\(bu 2\none\n", ".nf\n.RS 4\n\\&.\\en\n.RE\n.fi\n")
        .doesNotContain("---");
  }
}
