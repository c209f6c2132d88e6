// SPDX-License-Identifier: Apache-2.0
package org.windlass.bench.sample;

import java.util.List;
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
  private static final String ROW = "%10s%8s%8s%8s%8s%8s%7s%7s%8s%7s%n";

  /** Names of the table's columns. */
  public static final List<String> COLUMNS =
      List.of(
          "bytes", "samples", "median", "p99", "min", "stream", "empty", "GB/s", "floor", "/floor");

  private Times times() {
    return Times.of(measurement);
  }

  private double algorithmGBps() {
    return workload.receivedBytes() / (times().median() * 1e3);
  }

  /**
   * Returns the result as JSON. It always contains "verified", since a sampler throws for a wrong
   * byte.
   */
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

  /**
   * Returns the lines above the rows of a table: a description of the measurement, and the column
   * names.
   */
  public String tableHead() {
    String name = workload.by().isEmpty() ? measured.op() : "by " + workload.by();
    String data =
        workload.bytes() == 0 ? "" : ", " + measured.dtype() + " in " + measured.buffers();
    return String.format(
            "%s, %d %s, %s%s; times in us%n",
            name, workload.ranks(), measured.launch(), measured.target(), data)
        + String.format(ROW, COLUMNS.toArray());
  }

  public String toTableRow() {
    Times times = times();
    return String.format(
            Locale.ROOT,
            ROW,
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
        + seenLines();
  }

  /** Returns a line for each of the workload's other observations. */
  private String seenLines() {
    return measurement.seen().entrySet().stream()
        .map(
            field ->
                String.format(
                    "  %s %s%n",
                    field.getKey().replace('_', ' '), decimal((Double) field.getValue())))
        .collect(Collectors.joining());
  }

  /** Returns the number with at most two decimal places, in as few as 7 characters. */
  private static String decimal(double value) {
    int places = value < 100 ? 2 : value < 1000 ? 1 : 0;
    return Double.isNaN(value) ? "-" : String.format(Locale.ROOT, "%." + places + "f", value);
  }
}
