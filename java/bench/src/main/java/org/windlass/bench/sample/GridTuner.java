// SPDX-License-Identifier: Apache-2.0
package org.windlass.bench.sample;

import java.util.ArrayList;
import java.util.List;
import java.util.Objects;
import java.util.function.Function;
import org.windlass.LocalGroup;
import org.windlass.bench.side.Operation;
import org.windlass.bench.workload.Workload;
import org.windlass.error.UnsupportedException;
import org.windlass.gpu.CudaDriver;
import org.windlass.gpu.CudaGrids;

/**
 * Measures an operation on target cuda with 1, 2, 4 and so on cores (blocks of threads) for each
 * rank, up to the number that can run at a time. If ranks live in several processes, each process
 * has a tuner and makes the same calls. Only the results in the process of rank 0 are complete.
 */
public final class GridTuner implements AutoCloseable {
  /** Largest number of cores that a rank takes without a table. */
  private static final int MOST_CORES = 64;

  /**
   * Factor by which a median may exceed the smallest one. Of the acceptable numbers of cores, the
   * smallest is chosen.
   */
  private static final double SLACK = 1.03;

  /** Largest number of bytes that a row can cover. */
  private static final long MOST_BYTES = 1L << 46;

  private final Operation operation;
  private final int ranks;
  private final int sharers;
  private final CudaDriver.Device device;
  private final int mostCores;

  /** The median time with one number of cores. */
  public record Tried(int cores, double medianMicros) {}

  /**
   * The results at one size.
   *
   * @param bytes size as given on the command line
   * @param rowBytes size as a table counts it: the larger of a rank's input and output
   * @param tried all results, fewest cores first
   * @param chosen the result with the fewest cores whose median is within 3 % of the smallest
   */
  public record Choice(long bytes, long rowBytes, List<Tried> tried, Tried chosen) {
    public Choice {
      tried = List.copyOf(tried);
      Objects.requireNonNull(chosen, "chosen");
    }

    static Choice of(Operation operation, int ranks, long bytes, List<Tried> tried) {
      double least = tried.stream().mapToDouble(Tried::medianMicros).min().orElseThrow();
      Tried chosen =
          tried.stream()
              .filter(one -> one.medianMicros() <= SLACK * least)
              .findFirst()
              .orElseThrow();
      long rowBytes =
          Math.max(operation.inputBytes(ranks, bytes), operation.outputBytes(ranks, bytes));
      return new Choice(bytes, rowBytes, tried, chosen);
    }

    public Tried whole() {
      return tried.get(tried.size() - 1);
    }
  }

  /** Creates a tuner for the ranks of this process, which use the tuner's tables from then on. */
  public GridTuner(LocalGroup group, Operation operation) {
    this.operation = operation;
    this.ranks = group.communicators().get(0).size();
    int devices = CudaDriver.deviceCount();
    this.sharers = (group.size() + devices - 1) / devices;
    this.device = CudaDriver.device(0);
    for (int other = 1; other < Math.min(devices, ranks); other++) {
      CudaDriver.Device is = CudaDriver.device(other);
      if (!kind(is).equals(kind(device))) {
        throw new UnsupportedException(
            "GPU 0 is " + device.name() + " and GPU " + other + " is " + is.name()
                + ": grids are measured on GPUs of one kind, which CUDA_VISIBLE_DEVICES names");
      }
    }
    this.mostCores = Math.max(1, Math.min(MOST_CORES, CudaGrids.cores(0) / sharers));
  }

  /**
   * Returns the start of the rows for a GPU: its compute capability and number of multiprocessors.
   */
  private static String kind(CudaDriver.Device device) {
    return device.major() + "." + device.minor() + " " + device.multiprocessors();
  }

  private String key() {
    return String.join(
        " ", kind(device), operation.toString(), String.valueOf(ranks), String.valueOf(sharers));
  }

  private static String row(String key, long from, long to, int cores) {
    return key + " " + from + " " + to + " " + cores;
  }

  /** Returns the start of the table's rows for these GPUs, and the product name of the GPUs. */
  public String gpu() {
    return kind(device) + ", " + device.name();
  }

  /** Measures a workload and chooses a number of cores. The call is collective. */
  public Choice choose(Workload workload, Function<Workload, Sampler> samplers) {
    List<Tried> tried = new ArrayList<>();
    for (int cores = 1; ; cores = Math.min(2 * cores, mostCores)) {
      CudaGrids.use(new GridRows(List.of(row(key(), 0, MOST_BYTES, cores))).text());
      tried.add(new Tried(cores, Times.of(samplers.apply(workload).run()).median()));
      if (cores == mostCores) {
        return Choice.of(operation, ranks, workload.bytes(), tried);
      }
    }
  }

  /**
   * Returns {@code rows}, in which these choices replace the rows for this GPU model, operation and
   * number of ranks. The rows cover all sizes up to the largest choice. Between two measured sizes,
   * the row of the smaller one ends at their geometric mean, and the row of the larger one begins
   * there. Larger sizes than those measured get no row.
   */
  public GridRows into(GridRows rows, List<Choice> choices) {
    return into(rows, key(), choices);
  }

  static GridRows into(GridRows rows, String key, List<Choice> choices) {
    List<Choice> sorted = new ArrayList<>();
    choices.stream()
        .sorted((one, other) -> Long.compare(one.rowBytes(), other.rowBytes()))
        .filter(each -> sorted.isEmpty() || last(sorted).rowBytes() < each.rowBytes())
        .forEach(sorted::add);
    List<String> own = new ArrayList<>();
    long from = 0;
    for (int i = 0; i < sorted.size(); i++) {
      Choice each = sorted.get(i);
      boolean isLast = i + 1 == sorted.size();
      if (!isLast && sorted.get(i + 1).chosen().cores() == each.chosen().cores()) {
        continue;
      }
      long to =
          isLast
              ? each.rowBytes()
              : (long) Math.sqrt((double) each.rowBytes() * sorted.get(i + 1).rowBytes());
      own.add(row(key, from, to, each.chosen().cores()));
      from = to + 1;
    }
    return rows.with(key, own);
  }

  private static Choice last(List<Choice> choices) {
    return choices.get(choices.size() - 1);
  }

  /** Makes this process use the table that its environment variable names again. */
  @Override
  public void close() {
    CudaGrids.useVariable();
  }
}
