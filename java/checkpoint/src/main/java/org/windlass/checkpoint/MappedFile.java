// SPDX-License-Identifier: Apache-2.0
package org.windlass.checkpoint;

import java.nio.file.Path;
import org.windlass.internal.memory.Leaks;
import org.windlass.internal.memory.Memory;

/** Maps a whole file of any size to one contiguous range of memory. */
final class MappedFile {
  private MappedFile() {}

  static Memory of(Path path, long bytes) {
    long address = NativeFiles.map(path, bytes);
    return Memory.of(address, bytes, new Mapping(address, bytes));
  }

  private static final class Mapping extends Leaks.Resource {
    private final long address;
    private final long bytes;

    Mapping(long address, long bytes) {
      super(null);
      this.address = address;
      this.bytes = bytes;
    }

    @Override
    protected void free() {
      NativeFiles.unmap(address, bytes);
    }
  }
}
