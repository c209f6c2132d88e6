// SPDX-License-Identifier: Apache-2.0
package org.windlass.bench.sample;

import java.math.BigDecimal;
import java.math.RoundingMode;
import java.util.Locale;
import java.util.Map;
import java.util.Optional;
import java.util.OptionalDouble;
import java.util.stream.Collectors;
import org.windlass.Algorithm;
import org.windlass.bench.data.ByteSize;
import org.windlass.bench.workload.Workload;
import org.windlass.internal.json.JsonObject;

/**
 * The result of one measurement: one line of {@code windlass bench}. Times are in microseconds.
 */
public record BenchResult(BenchCase measured, Workload workload, Sampler.Measurement measurement) {
  private double medianMicros() {
    return micros(measurement.samples(), 0.5);
  }

  private double p99Micros() {
    return micros(measurement.samples(), 0.99);
  }

  private double minMicros() {
    return measurement.samples()[0] / 1e3;
  }

  private double streamMicros() {
    return measurement.streamNanos() / 1e3;
  }

  private double emptyMicros() {
    return micros(measurement.emptySamples(), 0.5);
  }

  private double algorithmGBps() {
    return workload.receivedBytes() / (medianMicros() * 1e3);
  }

  private static double micros(long[] samples, double quantile) {
    return Stamps.quantile(samples, quantile) / 1e3;
  }

  /**
   * Returns the line as one JSON object. The result is always verified, since a sampler throws if
   * it finds a wrong byte.
   */
  public String toJson() {
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
    fields.putAll(measured.details());
    fields.put("iterations", measurement.samples().length);
    fields.put("median_us", medianMicros());
    fields.put("p99_us", p99Micros());
    fields.put("min_us", minMicros());
    fields.put("stream_us", streamMicros());
    fields.put("empty_us", emptyMicros());
    fields.put("algbw_GBps", algorithmGBps());
    measurement.floorMicros().ifPresent(floor -> fields.put("floor_us", floor));
    fields.putAll(measurement.seen());
    fields.put("verified", true);
    fields.replaceAll((name, value) -> value instanceof Double number ? rounded(number) : value);
    return JsonObject.line(fields);
  }

  private static BigDecimal rounded(double value) {
    return BigDecimal.valueOf(value).setScale(3, RoundingMode.HALF_UP);
  }

  private static final String ROW = "%-14s %5s %8s %10s %10s %10s %10s %10s %10s %8s %10s %8s%n";

  /** Returns the head of the table of results. */
  public static String tableHead() {
    return String.format(
        Locale.ROOT,
        ROW,
        "op",
        "ranks",
        "bytes",
        "iterations",
        "median us",
        "p99 us",
        "min us",
        "stream us",
        "empty us",
        "GB/s",
        "floor us",
        "x floor");
  }

  /** Returns the result as a row of the table. */
  public String toTableRow() {
    OptionalDouble floor = measurement.floorMicros();
    return String.format(
        Locale.ROOT,
        ROW,
        workload.by().isEmpty() ? measured.op() : "by " + workload.by(),
        workload.ranks(),
        ByteSize.format(workload.bytes()),
        measurement.samples().length,
        decimal(medianMicros()),
        decimal(p99Micros()),
        decimal(minMicros()),
        decimal(streamMicros()),
        decimal(emptyMicros()),
        decimal(algorithmGBps()),
        floor.isPresent() ? decimal(floor.getAsDouble()) : "-",
        floor.isPresent() ? decimal(medianMicros() / floor.getAsDouble()) : "-")
        + seenLine();
  }

  /**
   * Returns the workload's other observations on a separate line, or an empty text without any.
   */
  private String seenLine() {
    if (measurement.seen().isEmpty()) {
      return "";
    }
    return measurement.seen().entrySet().stream()
        .map(field -> field.getKey().replace('_', ' ') + " " + decimal((Double) field.getValue()))
        .collect(Collectors.joining(", ", "  ", System.lineSeparator()));
  }

  private static String decimal(double value) {
    return String.format(Locale.ROOT, "%.2f", value);
  }
}
