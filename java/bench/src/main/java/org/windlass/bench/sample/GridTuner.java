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
 * A bench of an operation's grids on target cuda: at each size with 1, 2, 4 and so on cores a rank,
 * up to as many as run at a time. Where ranks live in several processes each has one, in the same
 * order, and what that of rank 0 finds is whole.
 */
public final class GridTuner implements AutoCloseable {
  /** As many cores as a rank takes without a table, at most. */
  private static final int MOST_CORES = 64;

  /** By how much a median may be above the least, where it is that of fewer cores. */
  private static final double SLACK = 1.03;

  /** Up to which a row may be. */
  private static final long MOST_BYTES = 1L << 46;

  private final Operation operation;
  private final int ranks;
  private final int sharers;
  private final CudaDriver.Device device;
  private final int mostCores;

  /**
   * One number of cores.
   *
   * @param medianMicros of the samples with so many
   */
  public record Tried(int cores, double medianMicros) {}

  /**
   * What was found at one size.
   *
   * @param bytes the size as the command line gives it
   * @param rowBytes as a table counts them: the larger of a rank's input and output
   * @param tried all that were tried, fewest cores first
   * @param chosen the fewest whose median is within 3 % of the least
   */
  public record Choice(long bytes, long rowBytes, List<Tried> tried, Tried chosen) {
    /** Immutable. */
    public Choice {
      tried = List.copyOf(tried);
      Objects.requireNonNull(chosen, "chosen");
    }

    /** Of an operation, once all is measured. */
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

    /** With as many cores as there are. */
    public Tried whole() {
      return tried.get(tried.size() - 1);
    }
  }

  /**
   * @param group the ranks of this process, whose operations go by tables of this from now on
   * @throws UnsupportedException if the ranks have GPUs of several kinds
   */
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

  /** What a row begins with: compute capability and multiprocessors. */
  private static String kind(CudaDriver.Device device) {
    return device.major() + "." + device.minor() + " " + device.multiprocessors();
  }

  /** What all rows of this tuner begin with. */
  private String key() {
    return String.join(
        " ", kind(device), operation.toString(), String.valueOf(ranks), String.valueOf(sharers));
  }

  private static String row(String key, long from, long to, int cores) {
    return key + " " + from + " " + to + " " + cores;
  }

  /** The GPUs, as a table tells them apart, and their name. */
  public String gpu() {
    return kind(device) + ", " + device.name();
  }

  /** Collective over all processes: measures a workload of the operation. */
  public Choice choose(Workload workload, Function<Workload, Sampler> samplers) {
    List<Tried> tried = new ArrayList<>();
    for (int cores = 1; ; cores = Math.min(2 * cores, mostCores)) {
      CudaGrids.use(new GridRows(List.of(row(key(), 0, MOST_BYTES, cores))).text());
      long[] samples = samplers.apply(workload).run().samples();
      tried.add(new Tried(cores, Stamps.quantile(samples, 0.5) / 1e3));
      if (cores == mostCores) {
        return Choice.of(operation, ranks, workload.bytes(), tried);
      }
    }
  }

  /**
   * The rows with those of these choices in place of what was said of this GPU, operation and
   * ranks. A choice is good for all fewer bytes, and between two sizes up to their geometric mean;
   * nothing is said of more than the largest.
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

  /** Has this process go by what its environment says again. */
  @Override
  public void close() {
    CudaGrids.useVariable();
  }
}
