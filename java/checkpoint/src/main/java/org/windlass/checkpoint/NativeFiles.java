// SPDX-License-Identifier: Apache-2.0
package org.windlass.checkpoint;

import java.nio.file.Path;
import org.windlass.internal.Native;
import org.windlass.internal.NativeMemory;
import org.windlass.internal.Natives;
import org.windlass.internal.memory.Memory;

/** File operations of the system that the JDK lacks. */
final class NativeFiles {
  private NativeFiles() {}

  /** Creates a new file with its disk blocks reserved. If that fails, no file is left. */
  static void create(Path path, long bytes) {
    Natives.call((out, error) -> Native.wl_file_create(utf8(path), bytes, error));
  }

  /**
   * Maps a whole file of any size to one contiguous range of memory. Writes to the memory do not
   * reach the file.
   */
  static Memory map(Path path, long bytes) {
    long address =
        Natives.call((out, error) -> Native.wl_file_map(utf8(path), bytes, out, error));
    return Memory.of(
        address, bytes, false, null, () -> Native.wl_file_unmap(address, bytes, 0));
  }

  /** Exchanges the names of two files or folders in one step. */
  static void exchange(Path one, Path other) {
    Natives.call((out, error) -> Native.wl_file_exchange(utf8(one), utf8(other), error));
  }

  /** Renames a file or folder to a name that does not exist yet. */
  static void publish(Path from, Path to) {
    Natives.call((out, error) -> Native.wl_file_publish(utf8(from), utf8(to), error));
  }

  private static byte[] utf8(Path path) {
    return NativeMemory.utf8(path.toString());
  }
}
