// SPDX-License-Identifier: Apache-2.0
package org.windlass.cli;

import picocli.CommandLine.Option;

/** Command-line option that makes a command print its results as JSON. */
final class JsonOption {
  @Option(names = "--json", description = "Print results as JSON, one object a line.")
  private boolean json;

  boolean isGiven() {
    return json;
  }
}
