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
import java.util.Objects;
import java.util.concurrent.atomic.AtomicLong;
import org.windlass.Communicator;
import org.windlass.CommunicatorOptions;
import org.windlass.DType;
import org.windlass.LocalGroup;
import org.windlass.NativeLibrary;
import org.windlass.Tensor;
import org.windlass.bench.data.Floor;
import org.windlass.layout.Placement;
import org.windlass.layout.TensorSpec;
import org.windlass.reshard.ProgressListener;
import org.windlass.transfer.Transfer;
import org.windlass.transfer.TransferBuilder;

/**
 * Runs the demo, in which a trainer's weights are sent to an inference fleet. Twelve ranks of this
 * process redistribute f32 weights to bf16. The demo prints the traffic, the speed compared with
 * the physical floor, and a line that confirms that every byte is right.
 */
public final class Demo {
  /** Number of versions. The first one includes page faults, and is shown separately. */
  private static final int VERSIONS = 9;

  /**
   * Source bytes of the copy with a cast that measures the floor. This is more than the caches
   * hold.
   */
  private static final long FLOOR_SAMPLE = 128L << 20;

  private final Model model;
  private final Duration deadline;
  private final PrintWriter out;
  private final ProgressListener listener;
  private final Map<String, List<Weight>> groups = new LinkedHashMap<>();
  /** Time of each version in microseconds, keyed by the group of weights. */
  private final Map<String, double[]> times = new HashMap<>();

  /** Time of the floor's copy in microseconds, measured right after each version. */
  private final double[] floors = new double[VERSIONS];
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
    for (String group : groups.keySet()) {
      times.put(group, new double[VERSIONS]);
    }
  }

  /** Runs the demo with {@code layers} layers, and throws if a byte is wrong. */
  public static void run(
      int layers, Duration deadline, PrintWriter out, ProgressListener listener) {
    new Demo(Model.ofLayers(layers), deadline, out, listener).run();
  }

  private void run() {
    CommunicatorOptions options = CommunicatorOptions.defaults().withDeadline(deadline);
    try (LocalGroup group =
            LocalGroup.of(Model.TRAINER_RANKS + Model.INFERENCE_RANKS, options);
        Tensor floorMemory = Tensor.allocate(DType.U8, 2 * FLOOR_SAMPLE + 128)) {
      printHead();
      List<Rank> ranks = group.call(Rank::new);
      for (int i = 0; i < VERSIONS; i++) {
        int version = i;
        group.run(comm -> ranks.get(comm.rank()).move(version));
        floors[version] = Floor.copyMicros(floorMemory, FLOOR_SAMPLE, DType.F32, DType.BF16, 3);
      }
      group.run(comm -> ranks.get(comm.rank()).finish());
    }
    listener.progress(totalBytes(), totalBytes());
    printTable();
    out.printf(
        Locale.ROOT,
        "verified: all %,d bytes on the inference ranks are right%n",
        checked.get());
    out.flush();
  }

  private void printHead() {
    long parameters = model.weights().stream().mapToLong(Weight::elements).sum();
    out.printf(
        Locale.ROOT,
        "A transformer of %d tensors and %,d parameters (shapes of Qwen3-0.6B)%n"
            + "from a trainer (dp=2 x tp=4, f32) to inference (tp=4, bf16)%n"
            + "%d ranks, %d cores, %s kernels%n",
        model.weights().size(),
        parameters,
        Model.TRAINER_RANKS + Model.INFERENCE_RANKS,
        NativeLibrary.allowedCores(),
        NativeLibrary.vectorPath());
    out.flush();
  }

  private long totalBytes() {
    return VERSIONS * model.bytesPerRank() * Model.INFERENCE_RANKS;
  }

  private final class Rank {
    private final Communicator comm;
    private final boolean trains;
    private final Map<String, Tensor> pieces;
    private final Map<String, Tensor> buffers;
    private final Map<String, Transfer> transfers = new LinkedHashMap<>();

    Rank(Communicator comm) {
      this.comm = comm;
      this.trains = comm.rank() < Model.TRAINER_RANKS;
      this.pieces = trains ? pieces(comm.rank()) : Map.of();
      this.buffers = trains ? Map.of() : buffers();
      groups.forEach((name, weights) -> transfers.put(name, register(weights)));
    }

    private Transfer register(List<Weight> weights) {
      TransferBuilder builder = TransferBuilder.of(comm);
      for (Weight weight : weights) {
        builder.add(
            TensorSpec.of(weight.name(), DType.F32, weight.from(), weight.shape()),
            pieces.get(weight.name()),
            TensorSpec.of(weight.name(), DType.BF16, weight.to(), weight.shape()),
            trains ? null : view(weight));
      }
      return builder.register(deadline);
    }

    void move(int version) {
      transfers.forEach(
          (name, transfer) -> {
            comm.barrier();
            long begin = System.nanoTime();
            transfer.run(version + 1, deadline);
            comm.barrier();
            if (comm.rank() == 0) {
              Objects.requireNonNull(times.get(name))[version] = (System.nanoTime() - begin) / 1e3;
              listener.progress(moved.addAndGet(transfer.totalBytes()), totalBytes());
            }
          });
    }

    void finish() {
      transfers.values().forEach(Transfer::close);
      if (!trains) {
        for (Weight weight : model.weights()) {
          checked.addAndGet(
              Values.check(weight, comm.rank() - Model.TRAINER_RANKS, view(weight)));
        }
      }
      comm.barrier();
      pieces.values().forEach(Tensor::close);
      buffers.values().forEach(Tensor::close);
    }

    private Tensor view(Weight weight) {
      long rows = weight.to().localShape(weight.shape(), comm.rank())[0];
      Tensor buffer = Objects.requireNonNull(buffers.get(weight.buffer()));
      return buffer.narrow(0, weight.bufferRow(), rows);
    }
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

  private void printTable() {
    out.printf(
        "%n%-20s%8s%10s%9s%9s%7s%9s%8s%n",
        (Object[]) ",tensors,MB,first ms,ms,GB/s,of floor,least".split(","));
    long bytes = 0;
    double[] all = new double[VERSIONS];
    double[] floor = new double[VERSIONS];
    for (Map.Entry<String, List<Weight>> group : groups.entrySet()) {
      double[] own = Objects.requireNonNull(times.get(group.getKey()));
      double[] least = floorsOf(group.getValue());
      long written = group.getValue().stream().mapToLong(Demo::writtenBytes).sum();
      printRow(group.getKey(), group.getValue().size(), written, own, least);
      bytes += written;
      for (int version = 0; version < VERSIONS; version++) {
        all[version] += own[version];
        floor[version] += least[version];
      }
    }
    printRow("all", model.weights().size(), bytes, all, floor);
    out.printf(
        Locale.ROOT,
        "%nMB: bytes written. First ms: the first version, which includes page faults.%n"
            + "ms, GB/s, of floor: medians of the other %d versions. Least: the lowest of them.%n"
            + "Floor: the time to copy and cast as many bytes, measured right after a version.%n",
        VERSIONS - 1);
  }

  private void printRow(
      String name, int tensors, long bytes, double[] micros, double[] floor) {
    double[] later = Arrays.copyOfRange(micros, 1, VERSIONS);
    double[] ofFloor = new double[VERSIONS - 1];
    for (int i = 0; i < ofFloor.length; i++) {
      ofFloor[i] = floor[i + 1] / micros[i + 1];
    }
    Arrays.sort(later);
    Arrays.sort(ofFloor);
    double median = middle(later);
    out.printf(
        Locale.ROOT,
        "%-20s%8d%10.3f%9.2f%9.3f%7.2f%7.0f %%%6.0f %%%n",
        name,
        tensors,
        bytes / 1e6,
        micros[0] / 1e3,
        median / 1e3,
        bytes / median / 1e3,
        100 * middle(ofFloor),
        100 * ofFloor[0]);
  }

  private static double middle(double[] sorted) {
    int half = sorted.length / 2;
    return sorted.length % 2 == 1 ? sorted[half] : (sorted[half - 1] + sorted[half]) / 2;
  }

  private static long writtenBytes(Weight weight) {
    boolean replicated = !(weight.to().placements().get(0) instanceof Placement.Shard);
    return 2 * weight.elements() * (replicated ? Model.INFERENCE_RANKS : 1);
  }

  /**
   * Returns the floor of a group of weights for each version, in microseconds. The floor is a lower
   * bound: the time to copy and cast the written elements at the speed of the sample. If two terms
   * are summed, it includes the second term's bytes.
   */
  private double[] floorsOf(List<Weight> weights) {
    double traffic = 0;
    for (Weight weight : weights) {
      long elements = writtenBytes(weight) / 2;
      traffic += elements * (weight.from().hasPartial() ? 10.0 : 6.0);
    }
    double ofSample = traffic / (FLOOR_SAMPLE * 6.0 / 4);
    return Arrays.stream(floors).map(micros -> micros * ofSample).toArray();
  }
}
