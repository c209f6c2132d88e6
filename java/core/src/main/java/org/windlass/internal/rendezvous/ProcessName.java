// SPDX-License-Identifier: Apache-2.0
package org.windlass.internal.rendezvous;

import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import org.windlass.internal.FailureMaker;
import org.windlass.internal.Failures;
import org.windlass.internal.Native;
import org.windlass.internal.Scratch;
import org.windlass.internal.Structs;

/**
 * A process as others of its host name it: a {@code wl_process_t}.
 *
 * @param started tells it from a later one of that pid
 * @param pidNamespace in which the pid means it
 */
record ProcessName(int pid, long started, long pidNamespace) {
  /** Fields of {@code /proc/PID/stat} after the name. */
  private static final int STATE = 0;

  private static final int START = 19;

  /** This one. */
  static ProcessName own(FailureMaker failures) {
    try (Scratch scratch = Scratch.take()) {
      long process = scratch.config(Structs.Process.SIZE);
      int code = Native.wl_process_self(process, scratch.error());
      Failures.check(code, scratch, failures);
      return new ProcessName(
          scratch.configInt(Structs.Process.PID),
          scratch.configLong(Structs.Process.STARTED),
          scratch.configLong(Structs.Process.PID_NAMESPACE));
    }
  }

  /** Whether it has not ended, where it lives in this process's pid namespace. */
  boolean lives() {
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
  long in(Scratch scratch) {
    long address = scratch.config(Structs.Process.SIZE);
    scratch.configInt(Structs.Process.PID, pid);
    scratch.configLong(Structs.Process.STARTED, started);
    scratch.configLong(Structs.Process.PID_NAMESPACE, pidNamespace);
    return address;
  }
}
