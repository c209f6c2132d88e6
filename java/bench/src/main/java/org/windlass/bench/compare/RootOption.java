// SPDX-License-Identifier: Apache-2.0
package org.windlass.bench.compare;

import java.nio.file.Path;
import picocli.CommandLine.Option;

/** The option by which {@code scripts/bench} says where its checkout is. */
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
