// SPDX-License-Identifier: Apache-2.0
package org.windlass.reshard.move;

import java.nio.ByteBuffer;
import org.windlass.checkpoint.SafetensorsFile;

/** Represents a source tensor in a file, or a rank's part of one. */
record Stored(SafetensorsFile file, String name) {
  /** Fills a buffer with the tensor's bytes from {@code from} on. */
  void read(long from, ByteBuffer into) {
    file.read(name, from, into);
  }

  long[] shape() {
    return file.entry(name).dims();
  }
}
