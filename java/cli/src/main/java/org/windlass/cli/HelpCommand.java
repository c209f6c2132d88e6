// SPDX-License-Identifier: Apache-2.0
package org.windlass.cli;

import java.util.List;
import org.jspecify.annotations.Nullable;
import picocli.CommandLine;
import picocli.CommandLine.Command;
import picocli.CommandLine.Model.CommandSpec;
import picocli.CommandLine.Parameters;
import picocli.CommandLine.Spec;
import picocli.CommandLine.UnmatchedArgumentException;

/** Runs {@code windlass help}: prints the help of the command, or of one of its commands. */
@Command(
    name = "help",
    description = "Prints the help of a command.",
    footer = {"  windlass help", "  windlass help reshard"})
final class HelpCommand implements Runnable {
  @Spec private CommandSpec spec;

  @Parameters(
      arity = "0..1",
      paramLabel = "COMMAND",
      completionCandidates = Choices.Commands.class,
      description = "The command (default: windlass itself).")
  private @Nullable String command;

  @Override
  public void run() {
    CommandLine root = spec.root().commandLine();
    CommandLine chosen = command == null ? root : root.getSubcommands().get(command);
    if (chosen == null) {
      throw new UnmatchedArgumentException(root, List.of(command));
    }
    chosen.usage(spec.commandLine().getOut());
  }
}
