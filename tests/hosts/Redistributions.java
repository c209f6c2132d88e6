// SPDX-License-Identifier: Apache-2.0

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import org.windlass.Communicator;
import org.windlass.CommunicatorOptions;
import org.windlass.DType;
import org.windlass.LocalGroup;
import org.windlass.ReduceOp;
import org.windlass.Tensor;
import org.windlass.layout.Layout;
import org.windlass.layout.Region;
import org.windlass.layout.TensorSpec;
import org.windlass.plan.Hosts;
import org.windlass.plan.TransferMode;
import org.windlass.transfer.Transfer;
import org.windlass.transfer.TransferBuilder;

/**
 * A process of ranks on hosts with a link each, which redistributes tensors, and holds what the
 * links' counters say that crossed against what the plan says has to: at most 1.05 of it, from 1 MiB
 * on. Takes the link's device and the ranks of a process. Rank 0 prints each case that does not keep
 * to it, and the largest share of all; with status 1 where there was such a case.
 */
public final class Redistributions {
  private static final Duration SOON = Duration.ofSeconds(60);

  /** Hosts' beats, and what TCP sends again on a busy machine, come on top: the least counts. */
  private static final int RUNS = 3;

  private static final boolean LONG = System.getenv("WINDLASS_TEST_LONG") != null;

  private static final double MOST = 1.05;

  /** Of f32, so large that in each case 1 MiB and more crosses; nothing divides the first. */
  private static final long[][] SHAPES =
      LONG
          ? new long[][] {{2039, 521}, {2048, 2048}, {1024, 1024}}
          : new long[][] {{2039, 521}, {2048, 2048}};

  private record Case(Layout from, Layout to, DType target, TransferMode mode, long[] shape) {
    @Override
    public String toString() {
      return "f32" + Arrays.toString(shape) + " " + from + " -> " + to.qualified() + " of " + target
          + ", " + mode;
    }

    TensorSpec source() {
      return TensorSpec.of("t", DType.F32, from, shape);
    }

    TensorSpec asTarget() {
      return TensorSpec.of("t", target, to, shape);
    }

    /** What the tensor holds there, which bf16 has exactly: a Partial's terms are all alike. */
    float value(long row, long column) {
      return term(row, column) * (from.hasPartial() ? from.mesh().size() : 1);
    }

    float term(long row, long column) {
      return (row * 31 + column * 7) & 63;
    }
  }

  private Redistributions() {}

  private static List<Case> cases(int ranks) {
    int half = ranks / 2;
    String[][] layouts = {
      {half + ":R", ranks + ":S0"}, // replicas of the first hosts, then shards on all
      {ranks + ":S0", ranks + ":S1"},
      {ranks + ":S0", ranks + ":R"}, // all ranks of a host need the same
      {half + ":S1", half + "@" + half + ":R"},
      {ranks + ":P", ranks + ":S0"},
    };
    List<Case> cases = new ArrayList<>();
    for (long[] shape : SHAPES) {
      for (String[] layout : layouts) {
        for (TransferMode mode : TransferMode.values()) {
          for (DType target : List.of(DType.F32, DType.BF16)) {
            Layout from = Layout.parse(layout[0]);
            boolean isLarge = shape[0] == 2048;
            if (!isLarge || target == DType.BF16 && mode == TransferMode.STAGED) {
              cases.add(new Case(from, Layout.parse(layout[1]), target, mode, shape));
            }
          }
        }
      }
    }
    return cases;
  }

  /** Bytes that this process's host has sent by a link. */
  private static long sent(String device) throws IOException {
    for (String line : Files.readAllLines(Path.of("/proc/self/net/dev"))) {
      String[] words = line.trim().split("[: ]+");
      if (words[0].equals(device)) {
        return Long.parseLong(words[9]); // eight of what was received come first
      }
    }
    throw new IOException("this host has no device " + device);
  }

  /** Visits this rank's elements of a tensor, in the order that they lie in. */
  private interface Element {
    void at(int index, long row, long column);
  }

  private static void forEach(Region region, Element element) {
    int index = 0;
    for (Region.Interval rows : region.intervals(0)) {
      for (long row = rows.start(); row < rows.end(); row++) {
        for (Region.Interval columns : region.intervals(1)) {
          for (long column = columns.start(); column < columns.end(); column++) {
            element.at(index++, row, column);
          }
        }
      }
    }
  }

  private static Tensor source(Case each, int rank) {
    if (!each.from().mesh().ranks().contains(rank)) {
      return null;
    }
    float[] values = new float[Math.toIntExact(each.source().localRegion(rank).numel())];
    forEach(
        each.source().localRegion(rank),
        (index, row, column) -> values[index] = each.term(row, column));
    return Tensor.allocate(DType.F32, each.source().localShape(rank)).copyFrom(values);
  }

  /** How many elements are not what they ought to be. */
  private static long wrong(Case each, Tensor target, int rank) {
    long[] wrong = {0};
    float[] values = new float[Math.toIntExact(target.numel())];
    if (each.target() == DType.BF16) {
      short[] bits = new short[values.length];
      target.copyTo(bits);
      for (int i = 0; i < bits.length; i++) {
        values[i] = Float.intBitsToFloat(bits[i] << 16);
      }
    } else {
      target.copyTo(values);
    }
    forEach(
        each.asTarget().localRegion(rank),
        (index, row, column) -> wrong[0] += values[index] == each.value(row, column) ? 0 : 1);
    return wrong[0];
  }

  private static long sum(Communicator comm, long own) {
    try (Tensor tensor = Tensor.allocate(DType.I64, 1).fill(own)) {
      comm.allReduce(tensor, ReduceOp.SUM);
      return tensor.getLong(0);
    }
  }

  /**
   * Bytes that all hosts send by their links meanwhile, and for the barriers around it: the least of
   * some runs, of which the first that is no more than {@code enough} is the last.
   */
  private static long sent(
      Communicator comm, String device, boolean counts, double enough, Runnable what)
      throws IOException {
    long least = Long.MAX_VALUE;
    for (int run = 0; run < RUNS && least > enough; run++) {
      comm.barrier();
      long before = counts ? sent(device) : 0;
      comm.barrier();
      what.run();
      comm.barrier();
      long after = counts ? sent(device) : 0;
      comm.barrier();
      least = Math.min(least, sum(comm, after - before));
    }
    return least;
  }

  /** Runs all cases; how many failed. */
  private static int run(Communicator comm, String device) throws IOException {
    int rank = comm.rank();
    int failed = 0;
    double worst = 0;
    for (Case each : cases(comm.size())) {
      Tensor source = source(each, rank);
      Tensor target =
          each.to().mesh().ranks().contains(rank)
              ? Tensor.allocate(each.target(), each.asTarget().localShape(rank))
              : null;
      TransferBuilder builder =
          TransferBuilder.of(comm).defaultMode(each.mode())
              .add(each.source(), source, each.asTarget(), target);
      Hosts hosts = builder.plans().get(0).options().hosts();
      boolean counts = rank == 0 || hosts.hostOf(rank) != hosts.hostOf(rank - 1);
      long planned = builder.plans().get(0).totals().hosts().crossBytes();
      long around = sent(comm, device, counts, 0, () -> {});
      long least;
      try (Transfer transfer = builder.register()) {
        least = sent(comm, device, counts, around + MOST * planned, transfer::run) - around;
      }
      long wrong = sum(comm, target == null ? 0 : wrong(each, target, rank));
      double share = (double) least / planned;
      if (rank == 0 && (wrong > 0 || planned < 1 << 20 || share < 1 || share > MOST)) {
        System.out.printf(
            "over: %s: %d bytes of %d planned, %.3f times; %d elements are wrong%n",
            each, least, planned, share, wrong);
        failed++;
      }
      worst = Math.max(worst, share);
      if (source != null) {
        source.close();
      }
      if (target != null) {
        target.close();
      }
    }
    if (rank == 0) {
      System.out.printf(
          "bytes: %d redistributions of 1 MiB and more: %.3f times what plans say at most%n",
          cases(comm.size()).size(), worst);
    }
    return failed;
  }

  public static void main(String[] arguments) throws Exception {
    int ranks = Integer.parseInt(arguments[1]);
    int[] failed = {0};
    CommunicatorOptions options = CommunicatorOptions.defaults().withDeadline(SOON);
    try (LocalGroup group = LocalGroup.fromEnvironment(ranks, options, SOON)) {
      group.run(
          comm -> {
            int own = run(comm, arguments[0]);
            if (comm.rank() == 0) {
              failed[0] = own;
            }
          });
    }
    System.exit(failed[0] == 0 ? 0 : 1);
  }
}
