// SPDX-License-Identifier: Apache-2.0
package org.windlass.bench.compare;

import java.nio.file.Path;
import picocli.CommandLine.Option;

/** Command-line option with which {@code scripts/bench} passes the folder of its checkout. */
final class RootOption {
  @Option(names = "--root", hidden = true, required = true, description = "The checkout.")
  private Path root;

  Path resolve(String path) {
    return root.resolve(path);
  }

  Path folder() {
    return root;
  }
}
