// SPDX-License-Identifier: Apache-2.0
package org.windlass.cli;

import org.windlass.cli.demo.Demo;
import org.windlass.error.InvalidArgumentException;
import picocli.CommandLine.Command;
import picocli.CommandLine.Mixin;
import picocli.CommandLine.Model.CommandSpec;
import picocli.CommandLine.Option;
import picocli.CommandLine.Spec;

/** Runs {@code windlass demo}, which {@code scripts/demo} starts. */
@Command(
    name = "demo",
    description =
        "Moves the weights of a small model from a trainer to inference ranks.",
    footer = {
      "  windlass demo --layers 1"
    })
final class DemoCommand implements Runnable {
  @Spec private CommandSpec spec;

  @Mixin private MovingOptions moving;

  @Option(
      names = "--layers",
      paramLabel = "N",
      defaultValue = "4",
      description = "Layers, 1 to 28, of about 160 MB each (default: ${DEFAULT-VALUE}).")
  private int layers;

  @Override
  public void run() {
    if (layers < 1 || layers > 28) {
      throw new InvalidArgumentException("--layers " + layers + ": must be 1 to 28");
    }
    moving.target();
    try (Unfinished unfinished = new Unfinished();
        ProgressBar bar = ProgressBar.on(Main.notes(spec))) {
      unfinished.add(bar);
      Demo.run(layers, moving.deadline(), spec.commandLine().getOut(), bar);
    }
  }
}
