// SPDX-License-Identifier: Apache-2.0
package org.windlass.bench.sample;

import java.util.Locale;
import java.util.Map;
import java.util.Optional;
import java.util.stream.Collectors;
import org.windlass.Algorithm;
import org.windlass.bench.data.ByteSize;
import org.windlass.bench.workload.Workload;
import org.windlass.internal.json.JsonObject;

/**
 * The result of one measurement: one line of {@code windlass bench}. Times are in microseconds.
 */
public record BenchResult(BenchCase measured, Workload workload, Sampler.Measurement measurement) {
  private static final String ROW = "%-14s %5s %8s %10s %10s %10s %10s %10s %10s %8s %10s %8s%n";
  private static final String HEAD =
      "op,ranks,bytes,iterations,median us,p99 us,min us,stream us,empty us,GB/s,floor us,x floor";

  private Times times() {
    return Times.of(measurement);
  }

  private double algorithmGBps() {
    return workload.receivedBytes() / (times().median() * 1e3);
  }

  /** Returns the result as JSON. It says "verified", since a sampler throws for a wrong byte. */
  public String toJson() {
    Times times = times();
    Map<String, Object> fields =
        JsonObject.of(
            "op", measured.op(),
            "by", Optional.of(workload.by()).filter(by -> !by.isEmpty()),
            "target", measured.target(),
            "launch", measured.launch(),
            "algorithm", measurement.algorithm().orElse(Algorithm.AUTO),
            "buffers", measured.buffers(),
            "ranks", workload.ranks(),
            "bytes", workload.bytes(),
            "dtype", measured.dtype());
    fields.putAll(workload.details());
    fields.put("iterations", measurement.samples().length);
    fields.put("median_us", times.median());
    fields.put("p99_us", times.p99());
    fields.put("min_us", times.min());
    fields.put("stream_us", times.stream());
    fields.put("empty_us", times.empty());
    fields.put("algbw_GBps", algorithmGBps());
    measurement.floorMicros().ifPresent(floor -> fields.put("floor_us", floor));
    fields.putAll(measurement.seen());
    fields.put("verified", true);
    fields.replaceAll(
        (name, value) -> value instanceof Double it ? JsonObject.decimal(it, 3) : value);
    return JsonObject.line(fields);
  }

  public static String tableHead() {
    return String.format(ROW, (Object[]) HEAD.split(","));
  }

  public String toTableRow() {
    Times times = times();
    return String.format(
            Locale.ROOT,
            ROW,
            workload.by().isEmpty() ? measured.op() : "by " + workload.by(),
            workload.ranks(),
            ByteSize.format(workload.bytes()),
            measurement.samples().length,
            decimal(times.median()),
            decimal(times.p99()),
            decimal(times.min()),
            decimal(times.stream()),
            decimal(times.empty()),
            decimal(algorithmGBps()),
            decimal(times.floor()),
            decimal(times.median() / times.floor()))
        + seenLine();
  }

  /** Returns a separate line with the workload's other observations, if there are any. */
  private String seenLine() {
    if (measurement.seen().isEmpty()) {
      return "";
    }
    return measurement.seen().entrySet().stream()
        .map(field -> field.getKey().replace('_', ' ') + " " + decimal((Double) field.getValue()))
        .collect(Collectors.joining(", ", "  ", System.lineSeparator()));
  }

  private static String decimal(double value) {
    return Double.isNaN(value) ? "-" : String.format(Locale.ROOT, "%.2f", value);
  }
}
