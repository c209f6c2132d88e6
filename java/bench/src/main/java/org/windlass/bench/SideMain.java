// SPDX-License-Identifier: Apache-2.0
package org.windlass.bench;

import java.time.Duration;
import java.util.Arrays;
import org.windlass.Algorithm;
import org.windlass.Communicator;
import org.windlass.CommunicatorOptions;
import org.windlass.DType;
import org.windlass.LocalGroup;
import org.windlass.NativeLibrary;
import org.windlass.plan.TransferMode;

/**
 * A program that measures one operation by one side that runs in a JVM, and prints a line of
 * {@link Times} for each size. Arguments: side (of a redistribution the mode), operation, ranks,
 * seconds for a size, sizes in bytes. Of a side with {@code -processes} behind its name it runs as
 * each of the processes that a launcher starts, and that of rank 0 prints.
 */
final class SideMain {
  private static final long WARM_UP_BYTES = 64 << 10;
  private static final String PROCESSES = "-processes";
  private static final Duration START = Duration.ofSeconds(60);

  private SideMain() {}

  public static void main(String[] args) {
    String operation = args[1];
    int ranks = Integer.parseInt(args[2]);
    double seconds = Double.parseDouble(args[3]);
    long[] sizes = Arrays.stream(args).skip(4).mapToLong(Long::parseLong).toArray();
    boolean launched = args[0].endsWith(PROCESSES);
    String side = launched ? args[0].substring(0, args[0].length() - PROCESSES.length()) : args[0];
    try (LocalGroup group =
        launched
            ? LocalGroup.fromEnvironment(1, CommunicatorOptions.defaults(), START)
            : Communicator.local(ranks)) {
      sampler(group, side, operation, seconds, Math.min(sizes[0], WARM_UP_BYTES)).warmUp();
      for (long bytes : sizes) {
        Sampler.Measurement measured = sampler(group, side, operation, seconds, bytes).run();
        if (group.communicators().get(0).rank() == 0) {
          System.out.println(bytes + " " + Times.of(measured));
        }
      }
    }
  }

  private static Sampler sampler(
      LocalGroup group, String name, String op, double seconds, long bytes) {
    int ranks = group.communicators().get(0).size();
    int cores = NativeLibrary.allowedCores();
    Workload workload =
        Redistribution.isNamed(op)
            ? Redistribution.parse(op).workload(bytes, TransferMode.parse(name))
            : workload(name, op, ranks, cores, bytes);
    return new Sampler(group, workload, cores, seconds, 1);
  }

  private static Workload workload(String name, String op, int ranks, int cores, long bytes) {
    Side side =
        switch (name) {
          case "window" -> new LibrarySide(Algorithm.AUTO, false);
          case "plain" -> new LibrarySide(Algorithm.AUTO, true);
          case "java" -> new JavaSide(ranks, cores);
          default -> throw new IllegalArgumentException("no side " + name);
        };
    return Operation.named(op)
        .<Workload>map(each -> new CollectiveWorkload(side, each, ranks, bytes, DType.F32))
        .orElseGet(() -> new BarrierWorkload(side, ranks));
  }
}
