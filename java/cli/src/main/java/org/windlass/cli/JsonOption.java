// SPDX-License-Identifier: Apache-2.0
package org.windlass.cli;

import picocli.CommandLine.Option;

/** The option by which every command that prints results prints them as JSON. */
final class JsonOption {
  @Option(names = "--json", description = "Results as JSON, an object a line, and nothing else.")
  private boolean json;

  boolean isGiven() {
    return json;
  }
}
