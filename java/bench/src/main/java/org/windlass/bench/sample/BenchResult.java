// SPDX-License-Identifier: Apache-2.0
package org.windlass.bench.sample;

import com.fasterxml.jackson.core.JsonGenerator;
import java.io.IOException;
import java.math.BigDecimal;
import java.math.RoundingMode;
import java.util.LinkedHashMap;
import java.util.Locale;
import java.util.Map;
import java.util.OptionalDouble;
import java.util.stream.Collectors;
import org.windlass.Algorithm;
import org.windlass.bench.data.ByteSize;
import org.windlass.bench.workload.Workload;
import org.windlass.internal.json.JsonObject;

/** One line of {@code windlass bench}: what was measured, times in microseconds. */
public record BenchResult(
    BenchCase measured,
    Algorithm algorithm,
    int ranks,
    long bytes,
    int iterations,
    double medianMicros,
    double p99Micros,
    double minMicros,
    double streamMicros,
    double emptyMicros,
    double algorithmGBps,
    OptionalDouble floorMicros,
    Map<String, Object> seen) {

  public static BenchResult of(BenchCase measured, Workload workload, Sampler.Measurement measurement) {
    long[] samples = measurement.samples();
    double median = Stamps.quantile(samples, 0.5) / 1e3;
    return new BenchResult(
        measured.by(workload.by()),
        measurement.algorithm().orElse(Algorithm.AUTO),
        workload.ranks(),
        workload.bytes(),
        samples.length,
        median,
        Stamps.quantile(samples, 0.99) / 1e3,
        samples[0] / 1e3,
        measurement.streamNanos() / 1e3,
        Stamps.quantile(measurement.emptySamples(), 0.5) / 1e3,
        workload.receivedBytes() / (median * 1e3),
        measurement.floorMicros(),
        measurement.seen());
  }

  /**
   * The line as one JSON object. A sampler that finds a wrong byte throws, so it is always
   * verified.
   */
  public String toJson() {
    Map<String, Object> fields = new LinkedHashMap<>();
    fields.put("op", measured.op());
    if (!measured.by().isEmpty()) {
      fields.put("by", measured.by());
    }
    fields.put("target", measured.target().toString().toLowerCase(Locale.ROOT));
    fields.put("launch", measured.launch());
    fields.put("algorithm", algorithm.toString());
    fields.put("buffers", measured.buffers());
    fields.put("ranks", ranks);
    fields.put("bytes", bytes);
    fields.put("dtype", measured.dtype().toString());
    fields.putAll(measured.details());
    fields.put("iterations", iterations);
    fields.put("median_us", medianMicros);
    fields.put("p99_us", p99Micros);
    fields.put("min_us", minMicros);
    fields.put("stream_us", streamMicros);
    fields.put("empty_us", emptyMicros);
    fields.put("algbw_GBps", algorithmGBps);
    floorMicros.ifPresent(floor -> fields.put("floor_us", floor));
    fields.putAll(seen);
    fields.put("verified", true);
    return JsonObject.line(
        json -> {
          for (Map.Entry<String, Object> field : fields.entrySet()) {
            json.writeFieldName(field.getKey());
            write(json, field.getValue());
          }
        });
  }

  private static void write(JsonGenerator json, Object value) throws IOException {
    if (value instanceof Double number) {
      json.writeNumber(BigDecimal.valueOf(number).setScale(3, RoundingMode.HALF_UP));
    } else if (value instanceof Number number) {
      json.writeNumber(number.longValue());
    } else if (value instanceof Boolean truth) {
      json.writeBoolean(truth);
    } else {
      json.writeString(value.toString());
    }
  }

  private static final String ROW = "%-14s %5s %8s %10s %10s %10s %10s %10s %10s %8s %10s %8s%n";

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

  public String toTableRow() {
    return String.format(
        Locale.ROOT,
        ROW,
        measured.by().isEmpty() ? measured.op() : "by " + measured.by(),
        ranks,
        ByteSize.format(bytes),
        iterations,
        decimal(medianMicros),
        decimal(p99Micros),
        decimal(minMicros),
        decimal(streamMicros),
        decimal(emptyMicros),
        decimal(algorithmGBps),
        floorMicros.isPresent() ? decimal(floorMicros.getAsDouble()) : "-",
        floorMicros.isPresent() ? decimal(medianMicros / floorMicros.getAsDouble()) : "-")
        + seenLine();
  }

  /** What else was seen, in a line of its own; nothing where that is nothing. */
  private String seenLine() {
    if (seen.isEmpty()) {
      return "";
    }
    return seen.entrySet().stream()
        .map(field -> field.getKey().replace('_', ' ') + " " + decimal((Double) field.getValue()))
        .collect(Collectors.joining(", ", "  ", System.lineSeparator()));
  }

  private static String decimal(double value) {
    return String.format(Locale.ROOT, "%.2f", value);
  }
}
