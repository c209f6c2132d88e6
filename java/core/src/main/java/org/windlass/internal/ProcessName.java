// SPDX-License-Identifier: Apache-2.0
package org.windlass.internal;

import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;

/**
 * Identifies a process on its host: a {@code wl_process_t}.
 *
 * @param pid the process id
 * @param started start time, which distinguishes it from a later process with the same pid
 * @param pidNamespace number of the namespace in which {@code pid} is valid
 */
public record ProcessName(int pid, long started, long pidNamespace) {
  private static final int STATE = 0;

  private static final int START = 19;

  public static ProcessName own() {
    return filled((process, error) -> Native.wl_process_self(process, error));
  }

  /**
   * Returns the identity of the process that has {@code pid} now.
   *
   * @throws org.windlass.error.PeerLostException if there is no such process
   */
  public static ProcessName of(int pid) {
    return filled((process, error) -> Native.wl_process_named(pid, process, error));
  }

  @FunctionalInterface
  private interface Filling {
    int fill(long process, long error);
  }

  private static ProcessName filled(Filling filling) {
    try (Scratch scratch = Scratch.take()) {
      int code = filling.fill(scratch.config(Structs.Process.SIZE), scratch.error());
      Failures.check(code, scratch);
      return new ProcessName(
          scratch.configInt(Structs.Process.PID),
          scratch.configLong(Structs.Process.STARTED),
          scratch.configLong(Structs.Process.PID_NAMESPACE));
    }
  }

  /** Returns the current state of the process: a {@code wl_process_state}. */
  public int look() {
    try (Scratch scratch = Scratch.take()) {
      return Native.wl_process_look(in(scratch));
    }
  }

  /** Returns true unless the process has ended. The process must be in this pid namespace. */
  public boolean lives() {
    try {
      Path file = Path.of("/proc/" + pid + "/stat");
      String stat = Files.readString(file, StandardCharsets.ISO_8859_1);
      // The name that precedes the fields is in brackets and may hold any character.
      String[] fields = stat.substring(stat.lastIndexOf(')') + 2).split(" ");
      return "ZX".indexOf(fields[STATE].charAt(0)) < 0 && Long.parseLong(fields[START]) == started;
    } catch (IOException e) {
      return false;
    }
  }

  /**
   * Writes this identity to native memory of {@code scratch}. Returns its address, which is valid
   * until the next {@link Scratch#config}.
   */
  public long in(Scratch scratch) {
    long address = scratch.config(Structs.Process.SIZE);
    scratch.configInt(Structs.Process.PID, pid);
    scratch.configLong(Structs.Process.STARTED, started);
    scratch.configLong(Structs.Process.PID_NAMESPACE, pidNamespace);
    return address;
  }
}
