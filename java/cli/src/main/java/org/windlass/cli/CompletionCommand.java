// SPDX-License-Identifier: Apache-2.0
package org.windlass.cli;

import picocli.AutoComplete;
import picocli.CommandLine.Command;
import picocli.CommandLine.Model.CommandSpec;
import picocli.CommandLine.Parameters;
import picocli.CommandLine.Spec;

/** Runs {@code windlass completion}: prints a script that completes command lines in a shell. */
@Command(
    name = "completion",
    description = "Prints a script that completes commands, options and their values.",
    footer = {"  source <(windlass completion bash)", "  source <(windlass completion zsh)"})
final class CompletionCommand implements Runnable {
  /** Shells for which a script exists. Zsh runs it in its emulation of Bash's completion. */
  static final String SHELLS = "bash, zsh";

  @Spec private CommandSpec spec;

  @Parameters(
      paramLabel = "SHELL",
      completionCandidates = Choices.Shells.class,
      description = "The shell: ${COMPLETION-CANDIDATES}.")
  private String shell;

  @Override
  public void run() {
    BenchOperations.requireOneOf("completion", shell, SHELLS);
    // The script tests in which shell it runs.
    spec.commandLine()
        .getOut()
        .println(AutoComplete.bash("windlass", spec.root().commandLine()));
  }
}
