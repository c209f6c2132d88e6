// SPDX-License-Identifier: Apache-2.0
package org.windlass.cli;

import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Objects;
import org.windlass.internal.json.JsonObject;
import org.windlass.kernel.Target;
import org.windlass.report.KernelProfile;
import org.windlass.report.KernelProfile.Engine;
import org.windlass.report.KernelProfile.Work;

/** Formats the profile of kernels on a checked target. */
final class ProfileOutput {
  private static final String ROW = "  %-5s %14s %18s %8s%n";
  private static final String HEAD =
      String.format(ROW, "pipe", "instructions", "bytes", "busy %");

  private ProfileOutput() {}

  static boolean counts(Target target) {
    return target == Target.A2A3SIM || target == Target.A5SIM;
  }

  static String table(List<KernelProfile> kernels) {
    StringBuilder table = new StringBuilder();
    for (KernelProfile kernel : kernels) {
      table.append(
          String.format(
              Locale.ROOT,
              "%s: runs %d, cycles %d, overlap %s %%%n"
                  + "  flags %d, barriers %d, notifies %d, UB %d bytes%n",
              kernel.kernel(),
              kernel.runs(),
              kernel.cycles() / kernel.cores(),
              percent(kernel.overlapCycles(), shorter(kernel)),
              kernel.flags(),
              kernel.barriers(),
              kernel.notifies(),
              kernel.bufferBytes()));
      table.append(HEAD);
      for (Engine engine : Engine.values()) {
        Work work = Objects.requireNonNull(kernel.engines().get(engine));
        String busy = percent(work.busyCycles(), kernel.cycles());
        table.append(String.format(ROW, engine, work.instructions(), work.bytes(), busy));
      }
    }
    return table.toString();
  }

  static String json(KernelProfile kernel, long bytes) {
    Map<String, Object> json =
        JsonObject.of(
            "kernel", kernel.kernel(),
            "bytes", bytes,
            "runs", kernel.runs(),
            "cores", kernel.cores(),
            "cycles", kernel.cycles(),
            "overlap_cycles", kernel.overlapCycles(),
            "flags", kernel.flags(),
            "barriers", kernel.barriers(),
            "notifies", kernel.notifies(),
            "buffer_bytes", kernel.bufferBytes());
    kernel.engines().forEach(
        (engine, work) ->
            json.put(
                engine.name(),
                JsonObject.of(
                    "instructions", work.instructions(),
                    "bytes", work.bytes(),
                    "busy_cycles", work.busyCycles())));
    return JsonObject.line(json);
  }

  /** Returns the busy cycles of the load engine or of the store engine, whichever has fewer. */
  private static long shorter(KernelProfile kernel) {
    return Math.min(
        Objects.requireNonNull(kernel.engines().get(Engine.MTE2)).busyCycles(),
        Objects.requireNonNull(kernel.engines().get(Engine.MTE3)).busyCycles());
  }

  private static String percent(long part, long whole) {
    return whole == 0 ? "-" : String.format(Locale.ROOT, "%.1f", 100.0 * part / whole);
  }
}
