// SPDX-License-Identifier: Apache-2.0
package org.windlass.cli.demo;

import java.io.PrintWriter;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.concurrent.atomic.AtomicLong;
import org.windlass.Communicator;
import org.windlass.CommunicatorOptions;
import org.windlass.DType;
import org.windlass.LocalGroup;
import org.windlass.NativeLibrary;
import org.windlass.Tensor;
import org.windlass.bench.Floor;
import org.windlass.layout.Placement;
import org.windlass.layout.TensorSpec;
import org.windlass.redistribute.Batch;
import org.windlass.redistribute.Transfer;
import org.windlass.reshard.ProgressListener;

/**
 * The demo, in which a trainer's weights become an inference fleet's: twelve ranks of this process,
 * f32 to bf16. It prints what moved, how fast beside the physical floor, and that every byte is
 * right.
 */
public final class Demo {
  private static final int VERSIONS = 3;
  private static final long FLOOR_SAMPLE = 64L << 20;
  private static final int FLOOR_SAMPLES = 3;

  private final Model model;
  private final Duration deadline;
  private final PrintWriter out;
  private final ProgressListener listener;
  private final Map<String, List<Weight>> groups = new LinkedHashMap<>();
  /** Nanoseconds of each version, by group. */
  private final Map<String, long[]> times = new HashMap<>();
  private final AtomicLong moved = new AtomicLong();
  private final AtomicLong checked = new AtomicLong();

  private Demo(
      Model model, Duration deadline, PrintWriter out, ProgressListener listener) {
    this.model = model;
    this.deadline = deadline;
    this.out = out;
    this.listener = listener;
    for (Weight weight : model.weights()) {
      groups.computeIfAbsent(weight.group(), key -> new ArrayList<>()).add(weight);
    }
    groups.keySet().forEach(group -> times.put(group, new long[VERSIONS]));
  }

  /**
   * Runs the demo.
   *
   * @param layers how many layers the model has
   * @param deadline of each operation
   * @throws org.windlass.VerificationFailedException if a byte is wrong
   */
  public static void run(
      int layers, Duration deadline, PrintWriter out, ProgressListener listener) {
    new Demo(Model.ofLayers(layers), deadline, out, listener).run();
  }

  private void run() {
    long parameters = model.weights().stream().mapToLong(Weight::elements).sum();
    out.printf(
        Locale.ROOT,
        "A transformer of %d tensors and %,d parameters (Qwen3-0.6B's names and shapes, fewer layers)%n"
            + "from a trainer, dp=2 x tp=4, f32, to inference, tp=4, bf16: %d ranks, %d cores, %s kernels%n",
        model.weights().size(),
        parameters,
        Model.TRAINER_RANKS + Model.INFERENCE_RANKS,
        NativeLibrary.allowedCores(),
        NativeLibrary.vectorPath());
    out.flush();
    CommunicatorOptions options = CommunicatorOptions.defaults().withDeadline(deadline);
    try (LocalGroup group =
        Communicator.local(Model.TRAINER_RANKS + Model.INFERENCE_RANKS, options)) {
      group.run(this::rank);
    }
    listener.progress(totalBytes(), totalBytes());
    printTable();
    out.printf(
        Locale.ROOT,
        "verified: all %,d bytes on the inference ranks are what the trainer's values give%n",
        checked.get());
    out.flush();
  }

  private long totalBytes() {
    return VERSIONS * model.bytesPerRank() * Model.INFERENCE_RANKS;
  }

  private void rank(Communicator comm) {
    int rank = comm.rank();
    boolean trains = rank < Model.TRAINER_RANKS;
    Map<String, Tensor> pieces = trains ? pieces(rank) : Map.of();
    Map<String, Tensor> buffers = trains ? Map.of() : buffers();
    for (Map.Entry<String, List<Weight>> group : groups.entrySet()) {
      Batch batch = Batch.of(comm);
      for (Weight weight : group.getValue()) {
        batch.add(
            TensorSpec.of(weight.name(), DType.F32, weight.from(), weight.shape()),
            pieces.get(weight.name()),
            TensorSpec.of(weight.name(), DType.BF16, weight.to(), weight.shape()),
            trains ? null : view(weight, rank, buffers));
      }
      try (Transfer transfer = batch.register(deadline)) {
        for (int version = 0; version < VERSIONS; version++) {
          comm.barrier();
          long begin = System.nanoTime();
          transfer.run(version + 1, deadline);
          comm.barrier();
          if (rank == 0) {
            times.get(group.getKey())[version] = System.nanoTime() - begin;
            listener.progress(moved.addAndGet(transfer.totalBytes()), totalBytes());
          }
        }
      }
    }
    if (!trains) {
      for (Weight weight : model.weights()) {
        checked.addAndGet(
            Values.check(weight, rank - Model.TRAINER_RANKS, view(weight, rank, buffers)));
      }
    }
    comm.barrier();
    pieces.values().forEach(Tensor::close);
    buffers.values().forEach(Tensor::close);
  }

  private Map<String, Tensor> pieces(int rank) {
    Map<String, Tensor> pieces = new HashMap<>();
    for (Weight weight : model.weights()) {
      Tensor piece =
          Tensor.allocate(DType.F32, weight.from().localShape(weight.shape(), rank));
      Values.fill(weight, rank, piece);
      pieces.put(weight.name(), piece);
    }
    return pieces;
  }

  private Map<String, Tensor> buffers() {
    Map<String, Tensor> buffers = new HashMap<>();
    model.buffers().forEach((name, shape) -> buffers.put(name, Tensor.allocate(DType.BF16, shape)));
    return buffers;
  }

  /** A weight's rows in its buffer. */
  private static Tensor view(Weight weight, int rank, Map<String, Tensor> buffers) {
    long rows = weight.to().localShape(weight.shape(), rank)[0];
    return buffers.get(weight.buffer()).narrow(0, weight.bufferRow(), rows);
  }

  private void printTable() {
    out.printf(
        Locale.ROOT,
        "%n%-20s %8s %12s %10s %8s %12s%n",
        "",
        "tensors",
        "MB",
        "ms",
        "GB/s",
        "of floor");
    long bytes = 0;
    double micros = 0;
    double floor = 0;
    for (Map.Entry<String, List<Weight>> group : groups.entrySet()) {
      long[] sorted = times.get(group.getKey()).clone();
      Arrays.sort(sorted);
      double median = sorted[VERSIONS / 2] / 1e3;
      double least = floorMicros(group.getValue());
      long written = group.getValue().stream().mapToLong(Demo::writtenBytes).sum();
      printRow(group.getKey(), group.getValue().size(), written, median, least);
      bytes += written;
      micros += median;
      floor += least;
    }
    printRow("all", model.weights().size(), bytes, micros, floor);
    out.printf(
        Locale.ROOT,
        "%nMB are written; times are medians of %d versions; the floor is the fastest copy-cast of the same bytes in"
            + " this run.%n",
        VERSIONS);
  }

  private void printRow(String name, int tensors, long bytes, double micros, double floor) {
    out.printf(
        Locale.ROOT,
        "%-20s %8d %12.3f %10.3f %8.2f %10.0f %%%n",
        name,
        tensors,
        bytes / 1e6,
        micros / 1e3,
        bytes / micros / 1e3,
        100 * floor / micros);
  }

  private static long writtenBytes(Weight weight) {
    boolean replicated = !(weight.to().placements().get(0) instanceof Placement.Shard);
    return 2 * weight.elements() * (replicated ? Model.INFERENCE_RANKS : 1);
  }

  /**
   * The fastest copy-cast of the written elements; where two terms are summed, with the second
   * term's bytes at the same rate.
   */
  private static double floorMicros(List<Weight> weights) {
    long plain = 0;
    long summed = 0;
    for (Weight weight : weights) {
      long elements = writtenBytes(weight) / 2;
      if (weight.from().hasPartial()) {
        summed += elements;
      } else {
        plain += elements;
      }
    }
    long bytes = 4 * (plain + summed);
    long sample = Math.min(bytes, FLOOR_SAMPLE);
    double copy = Double.MAX_VALUE;
    for (int i = 0; i < FLOOR_SAMPLES; i++) {
      copy = Math.min(copy, Floor.copyMicros(sample, DType.F32, DType.BF16, 3) * bytes / sample);
    }
    double traffic = 6.0 * plain + 10.0 * summed;
    return copy * traffic / (6.0 * (plain + summed));
  }
}
