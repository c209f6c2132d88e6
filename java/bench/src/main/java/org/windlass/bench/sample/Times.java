// SPDX-License-Identifier: Apache-2.0
package org.windlass.bench.sample;

import java.util.Arrays;
import java.util.Locale;
import java.util.stream.Collectors;
import java.util.stream.DoubleStream;

/**
 * The times that a contender took for a cell, in microseconds, with NaN for missing times. The text
 * form has the numbers in this order, separated by spaces.
 */
public record Times(
    double median,
    double p99,
    double min,
    double stream,
    double empty,
    double floor,
    double emptyP99) {
  private static final int NUMBERS = 7;

  public static Times of(Sampler.Measurement measurement) {
    long[] samples = measurement.samples();
    long[] empty = measurement.emptySamples();
    return new Times(
        Stamps.quantile(samples, 0.5) / 1e3,
        Stamps.quantile(samples, 0.99) / 1e3,
        samples[0] / 1e3,
        measurement.streamNanos() / 1e3,
        Stamps.quantile(empty, 0.5) / 1e3,
        measurement.floorMicros().orElse(Double.NaN),
        Stamps.quantile(empty, 0.99) / 1e3);
  }

  /** Parses the times in {@code words} from index {@code from} on. */
  public static Times parse(String[] words, int from) {
    double[] times = Arrays.stream(words).skip(from).mapToDouble(Double::parseDouble).toArray();
    if (times.length != NUMBERS) {
      throw new IllegalArgumentException(NUMBERS + " times, not " + times.length);
    }
    return new Times(times[0], times[1], times[2], times[3], times[4], times[5], times[6]);
  }

  @Override
  public String toString() {
    return DoubleStream.of(median, p99, min, stream, empty, floor, emptyP99)
        .mapToObj(each -> String.format(Locale.ROOT, "%.3f", each))
        .collect(Collectors.joining(" "));
  }
}
