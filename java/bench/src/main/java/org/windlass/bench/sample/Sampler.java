// SPDX-License-Identifier: Apache-2.0
package org.windlass.bench.sample;

import java.lang.management.CompilationMXBean;
import java.lang.management.ManagementFactory;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.Optional;
import java.util.OptionalDouble;
import java.util.function.Consumer;
import java.util.function.IntFunction;
import java.util.function.ObjIntConsumer;
import java.util.function.ObjLongConsumer;
import org.jspecify.annotations.Nullable;
import org.windlass.Algorithm;
import org.windlass.Communicator;
import org.windlass.DType;
import org.windlass.LocalGroup;
import org.windlass.ReduceOp;
import org.windlass.Tensor;
import org.windlass.bench.data.SharedWords;
import org.windlass.bench.workload.Workload;
import org.windlass.bench.workload.Workload.RankWork;
import org.windlass.report.Report;

/**
 * Takes samples of a workload. In an iteration every rank rewrites its input, records the time
 * {@code ready}, waits in a {@link LineUp}, calls, and records the time {@code leave}. A sample is
 * max(leave) - max(ready) over the ranks.
 *
 * <p>Rounds of the operation and of its physical floor, which is the lower bound of its time,
 * alternate. So both are measured under the same conditions. Iterations run in batches. The time of
 * a batch determines the size of the next batch, so that the time limit also holds on a busy
 * machine.
 *
 * <p>If ranks live in several processes, each process has a sampler. The sampler of rank 0 decides
 * for all of them and has the result. All times are of the host's one clock.
 */
public final class Sampler {
  private static final int BATCHES = 5;
  private static final int MOST_ITERATIONS = 30_000;
  private static final int FEWEST_ITERATIONS = 3;
  private static final int MOST_FLOOR_ITERATIONS = 500;
  private static final double WARM_UP_SHARE = 0.5;
  private static final double EMPTY_SHARE = 0.2;
  private static final double STREAM_SHARE = 0.2;

  private static final CompilationMXBean COMPILATION = ManagementFactory.getCompilationMXBean();

  /** A JVM counts as warm if compilation took at most this fraction of a measurement. */
  private static final double SETTLED = 0.03;

  /** Largest number of warm-ups of a process. The compilers of all JVMs share the same cores. */
  private static final int MOST_WARM_UPS = 4;

  /** Limit for the time of all rounds, warm-up and floors, as a multiple of the requested time. */
  private static final int MOST_TIMES = 20;

  private final LocalGroup group;
  private final Workload workload;
  private final int cores;
  private final RankWork[] works;
  private final double seconds;
  private final int rounds;
  private @Nullable Crew crew;
  private @Nullable LineUp lineUp;
  private long next;

  /**
   * Creates a sampler for the ranks of this process.
   *
   * @param cores cores that the ranks share
   * @param seconds time to spend on samples of the operation
   * @param rounds number of rounds. Each samples the operation, and then its floor: plain copies of
   *     the bytes that it must move
   */
  public Sampler(LocalGroup group, Workload workload, int cores, double seconds, int rounds) {
    this.group = group;
    this.workload = workload;
    this.cores = cores;
    this.works = new RankWork[group.size()];
    this.seconds = seconds;
    this.rounds = rounds;
  }

  /**
   * Result of one measurement.
   *
   * @param batches time stamps of the operation
   * @param samples samples of the operation, ascending, in nanoseconds
   * @param emptySamples samples of an empty call, ascending, in nanoseconds
   * @param streamNanos mean time of back-to-back calls, in nanoseconds
   * @param floorMicros floor in microseconds; empty if the operation moves no bytes
   * @param algorithm algorithm that the operation ran; empty if it has only one
   * @param seen further results that the workload has computed from the ranks' last calls
   */
  public record Measurement(
      List<Stamps> batches,
      long[] samples,
      long[] emptySamples,
      double streamNanos,
      OptionalDouble floorMicros,
      Optional<Algorithm> algorithm,
      Map<String, Object> seen) {}

  /**
   * Measures and discards the result until the JVMs of all processes have compiled the code, at
   * most {@link #MOST_WARM_UPS} times. Without this, the first result would measure interpreted
   * code. The call is collective over all processes.
   */
  public void warmUp() {
    int most = MOST_WARM_UPS * (workload.ranks() / group.size());
    boolean compiles = true;
    for (int i = 0; i < most && compiles; i++) {
      long startNs = System.nanoTime();
      long beforeMs = compiledMs();
      run();
      double ms = (System.nanoTime() - startNs) / 1e6;
      compiles = largest((compiledMs() - beforeMs) / ms) > SETTLED;
    }
  }

  private static long compiledMs() {
    return COMPILATION == null ? 0 : COMPILATION.getTotalCompilationTime();
  }

  private double largest(double own) {
    if (group.size() == workload.ranks()) {
      return own;
    }
    return group
        .call(
            comm -> {
              try (Tensor word = Tensor.allocate(DType.F32, 1).fill(own)) {
                comm.allReduce(word, ReduceOp.MAX);
                return word.getDouble(0);
              }
            })
        .get(0);
  }

  /**
   * Runs one measurement. The call is collective over all processes. Only the result in the process
   * of rank 0 is complete.
   */
  public Measurement run() {
    Communicator first = group.communicators().get(0);
    Duration limit =
        first.deadline().plus(Duration.ofNanos((long) (seconds * MOST_TIMES * 1e9)));
    List<SharedWords> words = group.call(comm -> new SharedWords(comm, LineUp.WORDS));
    lineUp = new LineUp(words.get(0), first, cores);
    crew = new Crew(group, limit);
    try {
      group.run(comm -> works[comm.rank() - first.rank()] = workload.open(comm));
      Measurement measurement = measure();
      // Keep the buffers until all processes have finished reading.
      crew().decided(0);
      return measurement;
    } finally {
      for (RankWork work : works) {
        if (work != null) {
          work.close();
        }
      }
      words.forEach(SharedWords::close);
    }
  }

  private Crew crew() {
    return Objects.requireNonNull(crew);
  }

  private LineUp lineUp() {
    return Objects.requireNonNull(lineUp);
  }

  private Measurement measure() {
    sample(1);
    verify();
    collect(seconds * WARM_UP_SHARE, 1, this::sample);
    List<Stamps> batches = new ArrayList<>();
    double[] floors = new double[rounds];
    for (int round = 0; round < rounds; round++) {
      List<Stamps> taken = collect(seconds / rounds, FEWEST_ITERATIONS, this::sample);
      verify();
      batches.addAll(taken);
      floors[round] = floor(Math.min(iterations(taken), MOST_FLOOR_ITERATIONS));
    }
    List<Stamps> empty = warmed(seconds * EMPTY_SHARE, this::sampleEmpty);
    List<Stamps> stream = warmed(seconds * STREAM_SHARE, this::stream);
    sample(1);
    verify();
    Arrays.sort(floors);
    double floor = floors[rounds / 2];
    return new Measurement(
        batches,
        Stamps.sortedSamples(batches),
        Stamps.sortedSamples(empty),
        mean(stream),
        Double.isNaN(floor) ? OptionalDouble.empty() : OptionalDouble.of(floor),
        algorithm(),
        workload.seen(group.communicators().get(0).report()));
  }

  /** Returns the floor in microseconds. One process measures it, and the others return NaN. */
  private double floor(int iterations) {
    if (workload.isOnDevices()) {
      return floorOfDevices(iterations);
    }
    double micros =
        crew().isFirst() ? workload.floorMicros(iterations).orElse(Double.NaN) : Double.NaN;
    crew().decided(0);
    return micros;
  }

  private double floorOfDevices(int iterations) {
    Stamps stamps = timed(iterations, 0, (work, iteration) -> {}, RankWork::copy);
    crew().gather(stamps);
    double micros = Stamps.quantile(Stamps.sortedSamples(List.of(stamps)), 0.5) / 1e3;
    crew().decided(0);
    return micros;
  }

  /** Returns the algorithm of rank 0's last call; empty if the operation has only one. */
  private Optional<Algorithm> algorithm() {
    return group.communicators().get(0).report().ranks().get(0).recent().stream()
        .findFirst()
        .flatMap(Report.Call::algorithm)
        .map(Algorithm::parse);
  }

  private static int iterations(List<Stamps> batches) {
    return batches.stream().mapToInt(Stamps::iterations).sum();
  }

  /**
   * Collects batches for {@code time} seconds, and discards the batches of the first half as
   * warm-up.
   */
  private List<Stamps> warmed(double time, IntFunction<Stamps> batch) {
    collect(time / 2, 1, batch);
    return collect(time / 2, 1, batch);
  }

  /** Collects batches for {@code time} seconds, and at least {@code fewest} iterations. */
  private List<Stamps> collect(double time, int fewest, IntFunction<Stamps> batch) {
    List<Stamps> batches = new ArrayList<>();
    long start = System.nanoTime();
    long spent = 0;
    int taken = 0;
    int count = 1;
    do {
      Stamps stamps = batch.apply(count);
      crew().gather(stamps);
      batches.add(stamps);
      taken += count;
      long before = spent;
      spent = System.nanoTime() - start;
      double left = Math.min(time * 1e9 - spent, time * 1e9 / BATCHES);
      double fits = left * count / (spent - before);
      fits = Math.max(fits, fewest - taken);
      boolean isOver = taken >= fewest && (spent >= time * 1e9 || taken >= MOST_ITERATIONS);
      int most = (int) Math.max(1, Math.min(fits, MOST_ITERATIONS - taken));
      count = (int) crew().decided(isOver ? 0 : most);
    } while (count > 0);
    return batches;
  }

  /**
   * Runs one call without measuring it, since memory and threads are not warm yet. Then samples.
   */
  private Stamps sample(int iterations) {
    long first = next;
    next += iterations + 1;
    return timed(iterations, first, RankWork::rewrite, RankWork::call);
  }

  private Stamps sampleEmpty(int iterations) {
    return timed(iterations, 0, RankWork::rewrite, work -> {});
  }

  private Stamps timed(
      int iterations, long first, ObjLongConsumer<RankWork> rewrite, Consumer<RankWork> call) {
    Stamps stamps = new Stamps(workload.ranks(), iterations);
    forEachRank(
        (work, rank) -> {
          rewrite.accept(work, first);
          lineUp().await();
          call.accept(work);
          for (int i = 0; i < iterations; i++) {
            rewrite.accept(work, first + 1 + i);
            long ready = System.nanoTime();
            lineUp().await();
            call.accept(work);
            stamps.set(rank, i, ready, System.nanoTime());
            // Wait, so that no rank rewrites its input while another is still in the call.
            lineUp().await();
          }
        });
    return stamps;
  }

  /** Measures {@code calls} back-to-back calls between two time stamps. */
  private Stamps stream(int calls) {
    Stamps stamps = new Stamps(workload.ranks(), calls);
    forEachRank(
        (work, rank) -> {
          work.stream(0);
          long ready = System.nanoTime();
          lineUp().await();
          for (int i = 1; i <= calls; i++) {
            work.stream(i);
          }
          stamps.set(rank, 0, ready, System.nanoTime());
        });
    return stamps;
  }

  private static double mean(List<Stamps> batches) {
    double nanos = 0;
    long calls = 0;
    for (Stamps batch : batches) {
      nanos += batch.sample(0);
      calls += batch.iterations();
    }
    return nanos / calls;
  }

  private void verify() {
    long last = next - 1;
    forEachRank((work, rank) -> work.verify(last));
  }

  private void forEachRank(ObjIntConsumer<RankWork> body) {
    int first = group.communicators().get(0).rank();
    group.run(comm -> body.accept(works[comm.rank() - first], comm.rank()));
  }
}
