// SPDX-License-Identifier: Apache-2.0
package org.windlass.plan;

import static org.assertj.core.api.Assertions.assertThat;

import java.util.ArrayList;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Random;
import java.util.Set;
import org.junit.jupiter.api.Test;
import org.windlass.DType;
import org.windlass.internal.Shapes;
import org.windlass.layout.Layout;
import org.windlass.layout.Region;
import org.windlass.testing.RandomLayouts;
import org.windlass.testing.RandomSeeds;

/** How ranks that hold the same share the sending of tensors of 1 MiB and more. */
class SendingTest {
  private static final List<long[]> SHAPES =
      List.of(
          new long[] {262_144},
          new long[] {300_007},
          new long[] {512, 512},
          new long[] {1021, 263},
          new long[] {3, 90_001},
          new long[] {64, 64, 65},
          new long[] {37, 83, 97},
          new long[] {2, 3, 5, 9973});

  /** Ranks that may send certain regions, and what each sends of them. */
  private static final class Senders {
    final Map<Integer, Long> bytes = new HashMap<>();

    /** Target cells of which a rank sends a part to somebody. */
    final Map<Integer, Set<String>> parts = new HashMap<>();

    /** The most that one row of a region's finest dimension weighs, with all its copies. */
    double row;
  }

  @Test
  void partialGroupsAreEven() {
    Plan plan =
        plan(Layout.parse("2x4:P,S0"), Layout.parse("1x3@8:R,S1"), 0, Hosts.one(), 1024, 1024);
    assertThat(unevenness(plan)).isLessThanOrEqualTo(1.01);
    List<Route> sent = sent(plan);
    assertThat(sent).hasSize(4 * 3 + 4); // the middle one of three regions is cut, once
    assertThat(sent.get(1).region()).hasToString("[0,127) x [342,684)");
  }

  @Test
  void whatReplicasSendToSeveralTargetsIsCutIntoTheSameParts() {
    Plan plan = plan(Layout.parse("4:R"), Layout.parse("3@4:R"), 0, Hosts.one(), 1024, 256);
    assertThat(plan.routes().stream().map(Route::toString))
        .containsExactly(
            "BROADCAST 0 -> [4, 5, 6] [0,256) x [0,256)",
            "BROADCAST 1 -> [4, 5, 6] [256,512) x [0,256)",
            "BROADCAST 2 -> [4, 5, 6] [512,768) x [0,256)",
            "BROADCAST 3 -> [4, 5, 6] [768,1024) x [0,256)");
  }

  @Test
  void manyReplicasGiveATargetItsCopyFromOneOrTwo() {
    Plan plan = plan(Layout.parse("48:R"), Layout.parse("64@48:R"), 0, Hosts.one(), 1024, 256);
    assertThat(unevenness(plan)).isLessThanOrEqualTo(1.01);
    for (int rank : plan.to().mesh().ranks()) {
      assertThat(plan.routesFor(rank).size()).isLessThanOrEqualTo(2);
    }
  }

  @Test
  void cutsStandAtWholeLinesOfCaches() {
    Plan plan = plan(Layout.parse("3:R"), Layout.parse("1@3:R"), 0, Hosts.one(), 1_000_000);
    assertThat(plan.routes().stream().map(route -> route.region().toString()))
        .containsExactly("[0,333328)", "[333328,666672)", "[666672,1000000)");
  }

  @RandomSeeds(1500)
  void randomReplicasAreEvenToAHundredth(long seed) {
    Random random = new Random(seed);
    RandomLayouts layouts = new RandomLayouts(seed, random.nextBoolean() ? 12 : 40);
    long[] shape = SHAPES.get(random.nextInt(SHAPES.size()));
    Layout from = layouts.layout(true, shape);
    Layout to = layouts.layout(false, shape);
    Hosts hosts = random.nextInt(2) == 0 ? layouts.hosts(from, to) : Hosts.one();
    Plan plan = plan(from, to, random.nextInt(4), hosts, shape);
    assertThat(unevenness(plan)).as("%s", plan).isLessThanOrEqualTo(1.01 + 1e-9);
    if (random.nextInt(10) == 0) {
      PlanPropertyTest.requireRestrictions(plan);
      requireWhole(plan);
    }
  }

  private static void requireWhole(Plan plan) {
    for (int rank : plan.to().mesh().ranks()) {
      long arrived = 0;
      for (Chunk chunk : plan.chunksFor(rank)) {
        arrived += chunk.isTarget() ? chunk.route().region().numel() : 0;
      }
      assertThat(arrived).isEqualTo(plan.to().localRegion(plan.shape(), rank).numel());
    }
  }

  private static Plan plan(Layout from, Layout to, int turn, Hosts hosts, long... shape) {
    PlanOptions options = PlanOptions.defaults().withTurn(turn).withHosts(hosts);
    return Plan.of(from, to, shape, DType.F32, DType.F32, DType.F32, options);
  }

  private static List<Route> sent(Plan plan) {
    return plan.routes().stream()
        .filter(r -> r.transport() == Transport.P2P || r.transport() == Transport.BROADCAST)
        .toList();
  }

  /**
   * The most that a rank sends as a multiple of the mean of those that could send it: the replicas
   * on the target's host, where there are some, else all of them, which send it to a host once. 0
   * where one alone could, or where no cut through one dimension of each region can come within a
   * hundredth. No rank sends parts of more than two regions: the first and the last of its stretch.
   */
  private static double unevenness(Plan plan) {
    Map<String, List<Integer>> replicas = new HashMap<>();
    Map<Integer, List<Integer>> replicasOf = new HashMap<>();
    Map<Integer, Region> held = new HashMap<>();
    for (int rank : plan.from().mesh().ranks()) {
      held.put(rank, plan.from().localRegion(plan.shape(), rank));
      List<Integer> same =
          replicas.computeIfAbsent(held.get(rank).toString(), h -> new ArrayList<>());
      same.add(rank);
      replicasOf.put(rank, same);
    }
    Map<Integer, Region> wanted = new HashMap<>();
    Map<String, Integer> copies = new HashMap<>();
    for (int rank : plan.to().mesh().ranks()) {
      wanted.put(rank, plan.to().localRegion(plan.shape(), rank));
      copies.merge(wanted.get(rank).toString(), 1, Integer::sum);
    }
    Map<String, Senders> groups = new HashMap<>();
    Map<String, List<Integer>> members = new HashMap<>();
    for (Route route : sent(plan)) {
      Set<Integer> crossed = new HashSet<>();
      for (int target : route.targets()) {
        PlanPropertyTest.Sharing sharing =
            PlanPropertyTest.Sharing.of(plan, replicasOf.get(route.source()), target);
        if (sharing.crosses() && !crossed.add(plan.options().hosts().of(target))) {
          continue;
        }
        String key = sharing.toString();
        members.put(key, sharing.senders());
        Senders group = groups.computeIfAbsent(key, k -> new Senders());
        group.bytes.merge(route.source(), route.bytes(), Long::sum);
        long[] common = common(held.get(route.source()), wanted.get(target));
        long whole = Shapes.numel(common);
        if (whole != route.numel()) {
          group
              .parts
              .computeIfAbsent(route.source(), s -> new HashSet<>())
              .add(wanted.get(target).toString());
        }
        long rows = 1;
        for (long extent : common) {
          rows = Math.max(rows, extent);
        }
        double row = 4.0 * whole / rows * copies.get(wanted.get(target).toString());
        group.row = Math.max(group.row, row);
      }
    }
    double worst = 0;
    for (Map.Entry<String, Senders> entry : groups.entrySet()) {
      Senders group = entry.getValue();
      List<Integer> senders = members.get(entry.getKey());
      group.parts.forEach(
          (rank, parts) -> assertThat(parts.size()).as("rank %d of %s", rank, plan).isLessThan(3));
      double mean =
          group.bytes.values().stream().mapToLong(Long::longValue).sum()
              / (double) senders.size();
      if (senders.size() < 2 || group.row > mean / 100) {
        continue;
      }
      for (int rank : senders) {
        worst = Math.max(worst, group.bytes.getOrDefault(rank, 0L) / mean);
      }
    }
    return worst;
  }

  /** For each dimension, how many elements both regions have. */
  static long[] common(Region a, Region b) {
    long[] common = new long[a.ndim()];
    for (int d = 0; d < common.length; d++) {
      for (Region.Interval one : a.intervals(d)) {
        for (Region.Interval other : b.intervals(d)) {
          long start = Math.max(one.start(), other.start());
          common[d] += Math.max(0, Math.min(one.end(), other.end()) - start);
        }
      }
    }
    return common;
  }
}
