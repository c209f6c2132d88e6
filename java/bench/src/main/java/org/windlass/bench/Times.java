// SPDX-License-Identifier: Apache-2.0
package org.windlass.bench;

import java.util.Locale;

/**
 * The times that a side took for a cell, in microseconds; NaN for what it did not measure. As a
 * line: the numbers in this order, with a space between.
 */
record Times(
    double median, double p99, double min, double stream, double empty, double floor) {

  static Times of(Sampler.Measurement measurement) {
    long[] samples = measurement.samples();
    return new Times(
        Stamps.quantile(samples, 0.5) / 1e3,
        Stamps.quantile(samples, 0.99) / 1e3,
        samples[0] / 1e3,
        measurement.streamNanos() / 1e3,
        Stamps.quantile(measurement.emptySamples(), 0.5) / 1e3,
        measurement.floorMicros().orElse(Double.NaN));
  }

  /**
   * @throws IllegalArgumentException if {@code words} from {@code from} on are no times
   */
  static Times parse(String[] words, int from) {
    if (words.length != from + 6) {
      throw new IllegalArgumentException("six times, not " + (words.length - from));
    }
    double[] times = new double[6];
    for (int i = 0; i < times.length; i++) {
      times[i] = Double.parseDouble(words[from + i]);
    }
    return new Times(times[0], times[1], times[2], times[3], times[4], times[5]);
  }

  @Override
  public String toString() {
    return String.format(
        Locale.ROOT, "%.3f %.3f %.3f %.3f %.3f %.3f", median, p99, min, stream, empty, floor);
  }
}
