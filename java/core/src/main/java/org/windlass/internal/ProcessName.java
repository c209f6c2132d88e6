// SPDX-License-Identifier: Apache-2.0
package org.windlass.internal;

import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;

/**
 * A process as others of its host name it: a {@code wl_process_t}.
 *
 * @param started tells it from a later one of that pid
 * @param pidNamespace in which the pid means it
 */
public record ProcessName(int pid, long started, long pidNamespace) {
  /** Fields of {@code /proc/PID/stat} after the name. */
  private static final int STATE = 0;

  private static final int START = 19;

  /** This one. */
  public static ProcessName own() {
    return filled((process, error) -> Native.wl_process_self(process, error));
  }

  /** The one that has {@code pid} now; PeerLost where none has. */
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

  /** What it does now: a {@code wl_process_state}. */
  public int look() {
    try (Scratch scratch = Scratch.take()) {
      return Native.wl_process_look(in(scratch));
    }
  }

  /** Whether it has not ended, where it lives in this process's pid namespace. */
  public boolean lives() {
    try {
      Path file = Path.of("/proc/" + pid + "/stat");
      String stat = Files.readString(file, StandardCharsets.ISO_8859_1);
      // The name before them stands in brackets and may hold any character.
      String[] fields = stat.substring(stat.lastIndexOf(')') + 2).split(" ");
      return "ZX".indexOf(fields[STATE].charAt(0)) < 0 && Long.parseLong(fields[START]) == started;
    } catch (IOException e) {
      return false;
    }
  }

  /** Address of the struct, filled in; until the scratch's configuration changes. */
  public long in(Scratch scratch) {
    long address = scratch.config(Structs.Process.SIZE);
    scratch.configInt(Structs.Process.PID, pid);
    scratch.configLong(Structs.Process.STARTED, started);
    scratch.configLong(Structs.Process.PID_NAMESPACE, pidNamespace);
    return address;
  }
}
