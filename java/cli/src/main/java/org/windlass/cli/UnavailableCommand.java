// SPDX-License-Identifier: Apache-2.0
package org.windlass.cli;

import java.util.List;
import org.windlass.UnsupportedException;
import picocli.CommandLine.Command;
import picocli.CommandLine.Unmatched;

/** Commands of the contract that this build does not have: they say so and end with status 3. */
abstract sealed class UnavailableCommand implements Runnable {
  private final String name;

  @Unmatched private List<String> ignored;

  UnavailableCommand(String name) {
    this.name = name;
  }

  @Override
  public void run() {
    throw new UnsupportedException("windlass " + name + ": not in this build");
  }

  @Command(name = "manifest", hidden = true, description = "Not in this build.")
  static final class Manifest extends UnavailableCommand {
    Manifest() {
      super("manifest");
    }
  }
}
