// SPDX-License-Identifier: Apache-2.0
package org.windlass.checkpoint;

import java.nio.file.Path;
import java.util.function.ToIntFunction;
import org.windlass.internal.Failures;
import org.windlass.internal.Native;
import org.windlass.internal.NativeMemory;
import org.windlass.internal.Natives;
import org.windlass.internal.Scratch;
import org.windlass.internal.memory.Memory;

/** File operations of the system that the JDK lacks. */
final class NativeFiles {
  private NativeFiles() {}

  /** Creates a new file with its disk blocks reserved. If that fails, no file is left. */
  static void create(Path path, long bytes) {
    call(scratch -> Native.wl_file_create(utf8(path), bytes, scratch.error()));
  }

  /**
   * Maps a whole file of any size to one contiguous range of memory. Writes to the memory do not
   * reach the file.
   */
  static Memory map(Path path, long bytes) {
    long address =
        call(
            scratch ->
                Native.wl_file_map(utf8(path), bytes, scratch.out(), scratch.error()));
    return Memory.of(
        address, bytes, false, null, () -> Native.wl_file_unmap(address, bytes, 0));
  }

  /** Exchanges the names of two files or folders in one step. */
  static void exchange(Path one, Path other) {
    call(
        scratch -> Native.wl_file_exchange(utf8(one), utf8(other), scratch.error()));
  }

  /** Renames a file or folder to a name that does not exist yet. */
  static void publish(Path from, Path to) {
    call(scratch -> Native.wl_file_publish(utf8(from), utf8(to), scratch.error()));
  }

  private static byte[] utf8(Path path) {
    return NativeMemory.utf8(path.toString());
  }

  private static long call(ToIntFunction<Scratch> function) {
    Natives.require();
    try (Scratch scratch = Scratch.take()) {
      Failures.check(function.applyAsInt(scratch), scratch);
      return scratch.outValue();
    }
  }
}
