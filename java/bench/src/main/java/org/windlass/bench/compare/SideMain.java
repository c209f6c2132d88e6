// SPDX-License-Identifier: Apache-2.0
package org.windlass.bench.compare;

import java.time.Duration;
import java.util.Arrays;
import java.util.List;
import org.windlass.Algorithm;
import org.windlass.CommunicatorOptions;
import org.windlass.DType;
import org.windlass.LocalGroup;
import org.windlass.NativeLibrary;
import org.windlass.bench.sample.Sampler;
import org.windlass.bench.sample.Times;
import org.windlass.bench.side.JavaSide;
import org.windlass.bench.side.LibrarySide;
import org.windlass.bench.side.Operation;
import org.windlass.bench.side.Side;
import org.windlass.bench.workload.BarrierWorkload;
import org.windlass.bench.workload.CollectiveWorkload;
import org.windlass.bench.workload.RingWorkload;
import org.windlass.bench.workload.SendReceiveWorkload;
import org.windlass.bench.workload.WaitWorkload;
import org.windlass.bench.workload.Workload;
import org.windlass.plan.TransferMode;

/**
 * Measures one operation in a JVM, and prints a line of {@link Times} for each size. The arguments
 * are the name of a {@link org.windlass.bench.side.Side} or, for a redistribution, of the mode;
 * then the operation, number of ranks, seconds for each size, and sizes in bytes. For {@code wait},
 * each size is BYTES:NANOSECONDS. If the first argument ends with {@code -processes}, a launcher
 * has started this program in several processes, and only the process of rank 0 prints.
 */
final class SideMain {
  private static final long WARM_UP_BYTES = 64 << 10;
  private static final String PROCESSES = "-processes";
  private static final Duration START = Duration.ofSeconds(60);

  private SideMain() {}

  /** A size and, for the side {@code wait}, the nanoseconds to wait. */
  private record Size(long bytes, long waitNanos) {
    static Size parse(String word) {
      String[] words = word.split(":");
      return new Size(Long.parseLong(words[0]), words.length > 1 ? Long.parseLong(words[1]) : 0);
    }
  }

  public static void main(String[] args) {
    String operation = args[1];
    int ranks = Integer.parseInt(args[2]);
    double seconds = Double.parseDouble(args[3]);
    List<Size> sizes = Arrays.stream(args).skip(4).map(Size::parse).toList();
    boolean launched = args[0].endsWith(PROCESSES);
    String side = launched ? args[0].substring(0, args[0].length() - PROCESSES.length()) : args[0];
    try (LocalGroup group =
        launched
            ? LocalGroup.fromEnvironment(1, CommunicatorOptions.defaults(), START)
            : LocalGroup.of(ranks)) {
      Size first = sizes.get(0);
      Size warm = new Size(Math.min(first.bytes(), WARM_UP_BYTES), first.waitNanos());
      sampler(group, side, operation, seconds, warm).warmUp();
      for (Size size : sizes) {
        Sampler.Measurement measured = sampler(group, side, operation, seconds, size).run();
        if (group.communicators().get(0).rank() == 0) {
          System.out.println(size.bytes() + " " + Times.of(measured));
        }
      }
    }
  }

  private static Sampler sampler(
      LocalGroup group, String name, String op, double seconds, Size size) {
    int ranks = group.communicators().get(0).size();
    int cores = NativeLibrary.allowedCores();
    Workload workload =
        Redistribution.isNamed(op)
            ? Redistribution.parse(op).workload(size.bytes(), TransferMode.parse(name))
            : workload(name, op, ranks, cores, size);
    return new Sampler(group, workload, cores, seconds, 1);
  }

  private static Workload workload(String name, String op, int ranks, int cores, Size size) {
    if (name.equals(Contender.WAIT.toString())) {
      return new WaitWorkload(ranks, size.bytes(), size.waitNanos());
    }
    if (op.equals(Cell.SEND_RECEIVE)) {
      return new SendReceiveWorkload(ranks, size.bytes(), DType.F32, name.equals("plain"));
    }
    if (op.equals(Cell.RING)) {
      return new RingWorkload(ranks, size.bytes(), DType.F32, name.equals("plain"));
    }
    Side side =
        switch (name) {
          case "window" -> new LibrarySide(Algorithm.AUTO, false);
          case "plain" -> new LibrarySide(Algorithm.AUTO, true);
          case "java" -> new JavaSide(ranks, cores);
          default -> throw new IllegalArgumentException("no side " + name);
        };
    return Operation.named(op)
        .<Workload>map(each -> new CollectiveWorkload(side, each, ranks, size.bytes(), DType.F32))
        .orElseGet(() -> new BarrierWorkload(side, ranks));
  }
}
