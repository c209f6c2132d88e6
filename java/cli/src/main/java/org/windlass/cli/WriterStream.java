// SPDX-License-Identifier: Apache-2.0
package org.windlass.cli;

import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.io.Writer;
import java.nio.charset.StandardCharsets;

/** Stream that passes UTF-8 bytes on to a writer at each flush. */
final class WriterStream extends ByteArrayOutputStream {
  private final Writer writer;

  WriterStream(Writer writer) {
    this.writer = writer;
  }

  @Override
  public synchronized void flush() throws IOException {
    writer.write(toString(StandardCharsets.UTF_8));
    reset();
    writer.flush();
  }
}
