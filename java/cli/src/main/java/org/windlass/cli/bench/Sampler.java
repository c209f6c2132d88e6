// SPDX-License-Identifier: Apache-2.0
package org.windlass.cli.bench;

import java.util.Arrays;
import java.util.OptionalDouble;
import java.util.function.ObjIntConsumer;
import org.windlass.LocalGroup;
import org.windlass.cli.bench.Workload.RankWork;

/**
 * Takes samples of a workload. In an iteration every rank rewrites its input, takes {@code ready},
 * lines up, calls, and takes {@code leave}; a sample is max(leave) - max(ready). Rounds of the
 * operation and of its floor alternate, so that both see the same machine.
 */
final class Sampler {
  private static final int ROUNDS = 3;
  private static final int MOST_ITERATIONS = 100_000;
  private static final int FEWEST_ITERATIONS = 10;
  private static final int MOST_FLOOR_ITERATIONS = 2_000;
  // Enough calls for the compiler to have done its work, where they are short.
  private static final int WARM_UP_BATCH = 3_000;
  private static final double WARM_UP_SHARE = 0.5;
  private static final double EMPTY_SHARE = 0.2;
  private static final double STREAM_SHARE = 0.2;

  private final LocalGroup group;
  private final Workload workload;
  private final LineUp lineUp;
  private final RankWork[] works;
  private final double seconds;
  private long next;

  /**
   * @param cores cores that the ranks share
   * @param seconds time to spend on samples of the operation
   */
  Sampler(LocalGroup group, Workload workload, int cores, double seconds) {
    this.group = group;
    this.workload = workload;
    this.lineUp = new LineUp(workload.ranks(), cores);
    this.works = new RankWork[workload.ranks()];
    this.seconds = seconds;
  }

  /** What was measured; samples are ascending, in nanoseconds. */
  record Measurement(
      Stamps[] rounds, long[] samples, long[] emptySamples, double streamNanos, OptionalDouble floorMicros) {}

  Measurement run() {
    try {
      group.run(comm -> works[comm.rank()] = workload.open(comm));
      sample(1);
      verify();
      double iterationNanos = warmUp();
      int count = iterationsIn(seconds / ROUNDS, iterationNanos, MOST_ITERATIONS / ROUNDS);
      Stamps[] rounds = new Stamps[ROUNDS];
      double[] floors = new double[ROUNDS];
      int floorCount = Math.min(count, MOST_FLOOR_ITERATIONS);
      for (int round = 0; round < ROUNDS; round++) {
        OptionalDouble floor = workload.floorMicros(floorCount);
        floors[round] = floor.orElse(Double.NaN);
        rounds[round] = sample(count);
        verify();
      }
      int emptyCount = iterationsIn(seconds * EMPTY_SHARE, iterationNanos, MOST_ITERATIONS);
      sampleEmpty(Math.min(emptyCount, WARM_UP_BATCH));
      Stamps empty = sampleEmpty(emptyCount);
      int calls = iterationsIn(seconds * STREAM_SHARE, iterationNanos, MOST_ITERATIONS);
      stream(Math.min(calls, WARM_UP_BATCH));
      double streamNanos = stream(calls);
      sample(1);
      verify();
      Arrays.sort(floors);
      double floor = floors[ROUNDS / 2];
      return new Measurement(
          rounds,
          merged(rounds),
          empty.sortedSamples(),
          streamNanos,
          Double.isNaN(floor) ? OptionalDouble.empty() : OptionalDouble.of(floor));
    } finally {
      for (RankWork work : works) {
        if (work != null) {
          work.close();
        }
      }
    }
  }

  /** Runs the sampling loop until it is compiled and its time known: mean nanoseconds an iteration. */
  private double warmUp() {
    long end = System.nanoTime() + (long) (seconds * WARM_UP_SHARE * 1e9);
    double nanos = Double.MAX_VALUE;
    int count = 1;
    while (true) {
      long start = System.nanoTime();
      sample(count);
      long now = System.nanoTime();
      nanos = Math.min(nanos, (now - start) / (double) count);
      if (now - end >= 0) {
        return nanos;
      }
      count = Math.min(2 * count, iterationsIn((end - now) / 1e9, nanos, WARM_UP_BATCH));
    }
  }

  private static int iterationsIn(double seconds, double iterationNanos, int most) {
    return (int) Math.max(FEWEST_ITERATIONS, Math.min(most, seconds * 1e9 / iterationNanos));
  }

  private Stamps sample(int iterations) {
    Stamps stamps = new Stamps(works.length, iterations);
    long first = next;
    next += iterations;
    forEachRank(
        (work, rank) -> {
          for (int i = 0; i < iterations; i++) {
            work.rewrite(first + i);
            long ready = System.nanoTime();
            lineUp.meet();
            work.call();
            stamps.set(rank, i, ready, System.nanoTime());
          }
        });
    return stamps;
  }

  private Stamps sampleEmpty(int iterations) {
    Stamps stamps = new Stamps(works.length, iterations);
    forEachRank(
        (work, rank) -> {
          for (int i = 0; i < iterations; i++) {
            work.rewrite(i);
            long ready = System.nanoTime();
            lineUp.meet();
            stamps.set(rank, i, ready, System.nanoTime());
          }
        });
    return stamps;
  }

  /** Mean nanoseconds of back-to-back calls, with one line-up before them all. */
  private double stream(int calls) {
    Stamps stamps = new Stamps(works.length, 1);
    forEachRank(
        (work, rank) -> {
          long ready = System.nanoTime();
          lineUp.meet();
          for (int i = 0; i < calls; i++) {
            work.stream(i);
          }
          stamps.set(rank, 0, ready, System.nanoTime());
        });
    return stamps.sortedSamples()[0] / (double) calls;
  }

  /** Checks what the last iteration of {@link #sample} has left. */
  private void verify() {
    long last = next - 1;
    forEachRank((work, rank) -> work.verify(last));
  }

  private void forEachRank(ObjIntConsumer<RankWork> body) {
    group.run(
        comm -> {
          try {
            body.accept(works[comm.rank()], comm.rank());
          } catch (LineUp.Cancelled e) {
            // Another rank's failure, which that rank throws.
          } catch (RuntimeException | Error e) {
            lineUp.cancel();
            throw e;
          }
        });
  }

  private static long[] merged(Stamps[] rounds) {
    long[] all = new long[0];
    for (Stamps round : rounds) {
      long[] samples = round.sortedSamples();
      int at = all.length;
      all = Arrays.copyOf(all, at + samples.length);
      System.arraycopy(samples, 0, all, at, samples.length);
    }
    Arrays.sort(all);
    return all;
  }
}
