// SPDX-License-Identifier: Apache-2.0
package org.windlass.cli.reshard;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Comparator;
import java.util.stream.Stream;

/** A temporary folder of one try of a property, removed with all that is in it. */
record ScratchFolder(Path path) implements AutoCloseable {
  static ScratchFolder create() throws IOException {
    return new ScratchFolder(Files.createTempDirectory("reshard"));
  }

  @Override
  public void close() throws IOException {
    try (Stream<Path> all = Files.walk(path)) {
      for (Path each : all.sorted(Comparator.reverseOrder()).toList()) {
        Files.delete(each);
      }
    }
  }
}
