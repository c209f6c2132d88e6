// SPDX-License-Identifier: Apache-2.0
package org.windlass.reshard.move;

import java.nio.ByteBuffer;
import org.windlass.checkpoint.SafetensorsFile;

/** A tensor, or a rank's part of one, in a file that is read. */
record Stored(SafetensorsFile file, String name) {
  /** Fills a buffer with its bytes from {@code from} on. */
  void read(long from, ByteBuffer into) {
    file.read(name, from, into);
  }

  long[] shape() {
    return file.entry(name).dims();
  }
}
