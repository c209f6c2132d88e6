// SPDX-License-Identifier: Apache-2.0
package org.windlass.plan;

import static org.assertj.core.api.Assertions.assertThat;

import java.lang.management.ManagementFactory;
import java.lang.management.ThreadMXBean;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.stream.IntStream;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;
import org.windlass.DType;
import org.windlass.layout.DeviceMesh;
import org.windlass.layout.Layout;
import org.windlass.layout.Placement;

/**
 * What one rank's plan costs when meshes are large; nothing runs. It prints what it finds: {@code
 * mvn -pl java/core process-test-classes surefire:test -Dtest=PlanScaleTest}.
 */
class PlanScaleTest {
  private static final int TENSORS = 1000;

  /** Pairs of 4-D layouts with mixed placements, {@code ranks} on each side. */
  private static List<Layout[]> pairs(int ranks) {
    int wide = ranks / 512;
    DeviceMesh source = DeviceMesh.of("pp", 4, "dp", wide, "tp", 16, "ep", 8);
    DeviceMesh target = DeviceMesh.of("dp", 8, "tp", 8, "ep", wide, "cp", 8).at(ranks);
    Placement r = Placement.replicate();
    Placement p = Placement.partial();
    Placement s0 = Placement.shard(0);
    Placement s1 = Placement.shard(1);
    return List.of(
        new Layout[] {source.layout(r, s0, s1, r), target.layout(r, s1, s0, r)},
        new Layout[] {source.layout(r, p, s0, r), target.layout(r, s0, r, s1)},
        new Layout[] {source.layout(r, s0, s0, s1), target.layout(r, s0, r, r)},
        new Layout[] {
          source.layout(r, r, s0, r), target.layout(r, r, Placement.stridedShard(0, 8), s0)
        });
  }

  /** How many routes one rank's plans of all tensors have, which all are held until the end. */
  private static long routes(int ranks, int shift, boolean targets) {
    return routes(ranks, shift, targets, Hosts.one());
  }

  private static long routes(int ranks, int shift, boolean targets, Hosts hosts) {
    List<Layout[]> pairs = pairs(ranks);
    List<Route> routes = new ArrayList<>();
    for (int i = 0; i < TENSORS; i++) {
      Layout[] pair = pairs.get(i % pairs.size());
      long[] shape = {4096 + 8L * i + shift, 7168 + i};
      PlanOptions options = PlanOptions.defaults().withHosts(hosts);
      Plan plan =
          Plan.of(pair[0], pair[1], shape, DType.BF16, DType.BF16, DType.BF16, options);
      routes.addAll(plan.routesFor((targets ? ranks : 0) + ranks / 3));
    }
    return routes.size();
  }

  /** What this thread ever took from the heap, so at least what it holds of it. */
  private static long allocatedBytes() {
    return ((com.sun.management.ThreadMXBean) ManagementFactory.getThreadMXBean())
        .getCurrentThreadAllocatedBytes();
  }

  /** Seconds that a plan takes only if its work grows faster than its routes. */
  private static final double FAR_TOO_LONG = 30;

  /** Processor time, so that other work on the machine counts little. */
  private static double seconds(Runnable work) {
    ThreadMXBean threads = ManagementFactory.getThreadMXBean();
    long start = threads.getCurrentThreadCpuTime();
    work.run();
    return (threads.getCurrentThreadCpuTime() - start) / 1e9;
  }

  @ParameterizedTest
  @ValueSource(booleans = {false, true})
  void aThousandTensorsBetweenEightThousandRanksPlanInSeconds(boolean targets) {
    routes(8192, 1, targets);
    long[] routes = new long[1];
    long before = allocatedBytes();
    double seconds = seconds(() -> routes[0] = routes(8192, 0, targets));
    long allocated = allocatedBytes() - before;
    System.out.printf(
        "1,000 tensors, 8,192 + 8,192 ranks, one %s: %d routes in %.3f s, %d MB allocated%n",
        targets ? "target" : "source", routes[0], seconds, allocated / 1_000_000);
    assertThat(seconds).isLessThan(FAR_TOO_LONG);
    assertThat(allocated).isLessThan(200_000_000);
  }

  /** The first plans of a JVM, which loads and compiles classes meanwhile; wall-clock time. */
  @ParameterizedTest
  @ValueSource(booleans = {false, true})
  void soTheyDoBetweenManyMoreRanksInAFreshJvm(boolean targets) throws Exception {
    Process process =
        new ProcessBuilder(
                Path.of(System.getProperty("java.home"), "bin", "java").toString(),
                "-cp",
                System.getProperty("java.class.path"),
                FreshJvm.class.getName(),
                Boolean.toString(targets))
            .redirectErrorStream(true)
            .start();
    String said = new String(process.getInputStream().readAllBytes(), StandardCharsets.UTF_8);
    assertThat(process.waitFor()).as(said).isZero();
    System.out.print(said);
    assertThat(said).contains(targets ? "826970 routes" : "190658 routes");
  }

  /** Makes the plans of one rank as the first work of its JVM. */
  static final class FreshJvm {
    private FreshJvm() {}

    public static void main(String[] arguments) {
      boolean targets = Boolean.parseBoolean(arguments[0]);
      long start = System.nanoTime();
      long routes = routes(131_072, 0, targets);
      System.out.printf(
          "1,000 tensors, 131,072 + 131,072 ranks, one %s, fresh JVM: %d routes in %.3f s%n",
          targets ? "target" : "source", routes, (System.nanoTime() - start) / 1e9);
    }
  }

  @ParameterizedTest
  @ValueSource(ints = {8, 24})
  void soTheyDoOnManyHosts(int ranksPerHost) {
    Hosts hosts = Hosts.ofEach(ranksPerHost);
    routes(8192, 1, true, hosts);
    long[] routes = new long[1];
    double seconds = seconds(() -> routes[0] = routes(8192, 0, true, hosts));
    System.out.printf(
        "1,000 tensors, 8,192 + 8,192 ranks, %d on a host, one target: %d routes in %.3f s%n",
        ranksPerHost, routes[0], seconds);
    assertThat(seconds).isLessThan(FAR_TOO_LONG);
  }

  @ParameterizedTest
  @ValueSource(booleans = {false, true})
  void theCostGrowsNoFasterThanTheRoutes(boolean targets) {
    routes(16384, 1, targets);
    double first = 0;
    for (int ranks = 1024; ranks <= 16384; ranks *= 4) {
      int asked = ranks;
      routes(ranks, 1, targets);
      long[] routes = new long[1];
      // Other work takes from the caches, and so adds to processor time, too.
      double seconds =
          IntStream.range(0, 3)
              .mapToDouble(i -> seconds(() -> routes[0] = routes(asked, 0, targets)))
              .min()
              .orElseThrow();
      double each = seconds * 1e6 / routes[0];
      System.out.printf(
          "%d ranks, %s: %d routes, %.2f us a route%n",
          ranks, targets ? "target" : "source", routes[0], each);
      first = first == 0 ? each : first;
      assertThat(each).isLessThan(2 * first);
    }
  }
}
