// SPDX-License-Identifier: Apache-2.0
package org.windlass.cli;

import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.io.OutputStream;
import java.io.Writer;
import java.nio.charset.StandardCharsets;

/** Stream that passes UTF-8 bytes on to a writer at each flush. */
final class WriterStream extends OutputStream {
  private final Writer writer;
  private final ByteArrayOutputStream held = new ByteArrayOutputStream();

  WriterStream(Writer writer) {
    this.writer = writer;
  }

  @Override
  public synchronized void write(int b) {
    held.write(b);
  }

  @Override
  public synchronized void write(byte[] bytes, int from, int length) {
    held.write(bytes, from, length);
  }

  @Override
  public synchronized void flush() throws IOException {
    writer.write(held.toString(StandardCharsets.UTF_8));
    held.reset();
    writer.flush();
  }
}
