// SPDX-License-Identifier: Apache-2.0
package org.windlass.internal;

import java.io.IOException;
import java.nio.ByteBuffer;
import org.windlass.error.ResourceException;

public final class UcxLibrary {
  private UcxLibrary() {}

  /**
   * Opens UCX, which moves data between hosts, through the native library. Uses the library for UCX
   * in the folder or the jar of the natives. UCX stays open in this process.
   *
   * @throws WindlassException Unsupported if UCX is not installed or that library is missing;
   *     Resource if it can't be copied out of a jar
   */
  public static void open() {
    try (Scratch scratch = Scratch.take()) {
      Failures.check(NativeLoader.findUcx(scratch.error()), scratch);
    } catch (IOException e) {
      throw new ResourceException(
          "libwindlass-ucx.so can't be copied out of its jar to " + NativeLoader.temporary() + " ("
              + e + "); name a writable folder with -Djava.io.tmpdir, or unpack the natives and name"
              + " their folder with -D" + NativeLoader.PATH_PROPERTY,
          e);
    }
  }

  /**
   * Returns the UCX version and this host's network devices, such as {@code 1.13.1: eth0 lo}.
   *
   * @throws WindlassException as {@link #open} does; also Unsupported if this host has none of the
   *     devices that the settings name
   */
  public static String describe() {
    open();
    long room = Natives.call((out, error) -> Native.wl_ucx_describe(0, 0, out, error));
    ByteBuffer text = Structs.allocate((int) room);
    Natives.call(
        (out, e) -> Native.wl_ucx_describe(NativeMemory.address(text), room, out, e));
    return Structs.text(text, 0, text.capacity());
  }
}
