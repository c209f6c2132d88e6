// SPDX-License-Identifier: Apache-2.0
package org.windlass.cli;

import picocli.CommandLine.Option;

/** Command-line option that makes a command print its results as JSON. */
final class JsonOption {
  @Option(names = "--json", description = "Results as JSON, an object a line, and nothing else.")
  private boolean json;

  boolean isGiven() {
    return json;
  }
}
