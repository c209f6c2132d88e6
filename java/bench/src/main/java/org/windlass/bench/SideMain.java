// SPDX-License-Identifier: Apache-2.0
package org.windlass.bench;

import java.util.Arrays;
import org.windlass.Algorithm;
import org.windlass.Communicator;
import org.windlass.DType;
import org.windlass.LocalGroup;
import org.windlass.NativeLibrary;
import org.windlass.plan.TransferMode;

/**
 * A program that measures one operation by one side that runs in a JVM, and prints a line of
 * {@link Times} for each size. Arguments: side (of a redistribution the mode), operation, ranks,
 * seconds for a size, sizes in bytes.
 */
final class SideMain {
  private static final long WARM_UP_BYTES = 64 << 10;

  private SideMain() {}

  public static void main(String[] args) {
    String operation = args[1];
    int ranks = Integer.parseInt(args[2]);
    double seconds = Double.parseDouble(args[3]);
    long[] sizes = Arrays.stream(args).skip(4).mapToLong(Long::parseLong).toArray();
    // Compiles what the first size would otherwise be measured without.
    measure(args[0], operation, ranks, seconds, Math.min(sizes[0], WARM_UP_BYTES));
    for (long bytes : sizes) {
      System.out.println(bytes + " " + measure(args[0], operation, ranks, seconds, bytes));
    }
  }

  private static Times measure(String name, String op, int ranks, double seconds, long bytes) {
    int cores = NativeLibrary.allowedCores();
    Workload workload =
        Redistribution.isNamed(op)
            ? Redistribution.parse(op).workload(bytes, TransferMode.parse(name))
            : workload(name, op, ranks, cores, bytes);
    try (LocalGroup group = Communicator.local(ranks)) {
      return Times.of(new Sampler(group, workload, cores, seconds, 1).run());
    }
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
