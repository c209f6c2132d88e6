// SPDX-License-Identifier: Apache-2.0
package org.windlass.internal;

import java.io.IOException;
import java.lang.ref.Reference;
import java.nio.ByteBuffer;
import org.windlass.error.ResourceException;

/** UCX, which carries bytes between hosts, as the native library opens it. */
public final class UcxLibrary {
  private UcxLibrary() {}

  /**
   * Opens it by the library that lies where the natives came from, once a process.
   *
   * @throws WindlassException Unsupported where UCX is not installed, or that library is not there;
   *     Resource where it can't be copied out of a jar
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
   * UCX's version, and the network devices that are here, such as {@code 1.13.1: eth0 lo}.
   *
   * @throws WindlassException what {@link #open} does, and Unsupported where the settings of this
   *     process name no network that is here
   */
  public static String describe() {
    open();
    try (Scratch scratch = Scratch.take()) {
      Failures.check(Native.wl_ucx_describe(0, 0, scratch.out(), scratch.error()), scratch);
      ByteBuffer text = Structs.allocate((int) scratch.outValue());
      int code =
          Native.wl_ucx_describe(
              NativeMemory.address(text), text.capacity(), scratch.out(), scratch.error());
      Failures.check(code, scratch);
      Reference.reachabilityFence(text);
      return Structs.text(text, 0, text.capacity());
    }
  }
}
