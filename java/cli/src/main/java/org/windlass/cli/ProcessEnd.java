// SPDX-License-Identifier: Apache-2.0
package org.windlass.cli;

import java.io.FileDescriptor;
import java.io.FileOutputStream;
import java.io.PrintWriter;
import java.nio.file.Path;
import java.util.List;
import org.windlass.error.AbortedException;
import org.windlass.error.ErrorCode;

/**
 * Ends the process when a command is over or a signal arrives. A signal removes unfinished outputs.
 */
final class ProcessEnd {
  private static final int INTERRUPTED = 130;

  private static final Thread HOOK = new Thread(ProcessEnd::bySignal, "windlass-cleanup");

  private static volatile boolean json;

  private ProcessEnd() {}

  /**
   * Makes a signal that ends the process remove everything in {@link Unfinished} and report it,
   * until {@link #exit} is called. The exit status is then 130.
   *
   * @param asJson whether errors are printed as JSON
   */
  static void awaitSignals(boolean asJson) {
    json = asJson;
    try {
      Runtime.getRuntime().addShutdownHook(HOOK);
    } catch (IllegalStateException endingAlready) {
      // No command has begun yet.
    }
  }

  /** Ends the process with this status, unless a signal is about to end it. */
  static void exit(int status) {
    try {
      Runtime.getRuntime().removeShutdownHook(HOOK);
    } catch (IllegalStateException endingAlready) {
      // The shutdown hook sets the status, so this thread waits for it.
    }
    System.exit(status);
  }

  /**
   * Returns true if a signal is ending the process. In this case, failures may be consequences of
   * the signal.
   */
  static boolean isNear() {
    Thread probe = new Thread(() -> {});
    try {
      Runtime.getRuntime().addShutdownHook(probe);
      Runtime.getRuntime().removeShutdownHook(probe);
      return false;
    } catch (IllegalStateException shuttingDown) {
      return true;
    }
  }

  private static void bySignal() {
    try {
      if (Unfinished.removeAll() && !LaunchedRank.isThis()) {
        complain(new PrintWriter(new FileOutputStream(FileDescriptor.err), true));
      }
    } finally {
      Runtime.getRuntime().halt(Unfinished.isOver() ? 0 : INTERRUPTED);
    }
  }

  private static String hint(List<Path> complete) {
    if (!complete.isEmpty()) {
      return complete.get(0) + " is complete";
    }
    return "run it again"
        + (Unfinished.hasRemovedOutput() ? "; unfinished output was removed" : "");
  }

  private static void complain(PrintWriter err) {
    Complaint complaint =
        new Complaint(
            ErrorCode.ABORTED,
            INTERRUPTED,
            "ended by a signal",
            hint(Unfinished.complete()),
            new AbortedException("ended by a signal"));
    complaint.print(err, json, false);
  }
}
