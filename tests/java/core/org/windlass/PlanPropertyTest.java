// SPDX-License-Identifier: Apache-2.0
package org.windlass;

import static org.assertj.core.api.Assertions.assertThat;

import java.util.ArrayList;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import net.jqwik.api.ForAll;
import net.jqwik.api.Property;
import net.jqwik.api.ShrinkingMode;

/** Random layout pairs and shapes against the slow reference. */
class PlanPropertyTest {
  @Property(tries = 3000, shrinking = ShrinkingMode.OFF)
  void everyTargetElementIsWrittenOnceWithTheRightValue(@ForAll long seed) {
    new PlanSimulation(plan(seed, 16, 5, 2500)).check();
  }

  @Property(tries = 40, shrinking = ShrinkingMode.OFF)
  void largeMeshesToo(@ForAll long seed) {
    Plan plan = plan(seed, 512, 4, 800);
    new PlanSimulation(plan).check();
    requireEvenSending(plan);
    requireRestrictions(plan);
  }

  @Property(tries = 3000, shrinking = ShrinkingMode.OFF)
  void localTensorsAreWhatTheReferenceSays(@ForAll long seed) {
    RandomLayouts random = new RandomLayouts(seed, 16);
    long[] shape = random.shape(5, 2500);
    Layout layout = random.layout(shape.length, true);
    for (int rank : layout.mesh().ranks()) {
      Region region = layout.localRegion(shape, rank);
      List<List<Long>> held = DistributionReference.held(layout, rank, shape);
      for (int d = 0; d < shape.length; d++) {
        List<Long> indices = new ArrayList<>();
        for (Region.Interval interval : region.intervals(d)) {
          for (long i = interval.start(); i < interval.end(); i++) {
            indices.add(i);
          }
        }
        assertThat(indices).as("%s, rank %d, dimension %d", layout, rank, d).isEqualTo(held.get(d));
        assertThat(layout.localShape(shape, rank)[d]).isEqualTo(held.get(d).size());
      }
    }
  }

  @Property(tries = 2000, shrinking = ShrinkingMode.OFF)
  void aRankFindsItsRoutesByItself(@ForAll long seed) {
    requireRestrictions(plan(seed, 16, 4, 2500));
  }

  @Property(tries = 2000, shrinking = ShrinkingMode.OFF)
  void replicasSendEqualShares(@ForAll long seed) {
    requireEvenSending(plan(seed, 16, 4, 2500));
  }

  @Property(tries = 2000, shrinking = ShrinkingMode.OFF)
  void aRankThatHoldsItsRegionCopiesItLocally(@ForAll long seed) {
    Plan plan = plan(seed, 16, 3, 600);
    for (Route route : plan.routes()) {
      for (int target : route.targets()) {
        boolean local = route.transport() == Transport.LOCAL;
        assertThat(local).isEqualTo(target == route.source());
        if (!local && plan.from().mesh().contains(target)) {
          assertThat(DistributionReference.held(plan.from(), target, plan.shape()))
              .isNotEqualTo(DistributionReference.held(plan.from(), route.source(), plan.shape()));
        }
      }
      int targets = route.targets().size();
      assertThat(route.transport() == Transport.BROADCAST).isEqualTo(targets > 1);
      assertThat(route.transport() == Transport.NONE).isEqualTo(targets == 0);
    }
  }

  @Property(tries = 2000, shrinking = ShrinkingMode.OFF)
  void everyTermOfAReductionHasItsRoute(@ForAll long seed) {
    Plan plan = plan(seed, 16, 3, 600);
    Map<String, Integer> wanted = new HashMap<>();
    Map<String, Integer> found = new HashMap<>();
    for (Route route : plan.routes()) {
      assertThat(route.sources())
          .isEqualTo(DistributionReference.group(plan.from(), route.source()));
      if (route.transport() == Transport.NONE) {
        if (route.numel() > 0) {
          found.merge(route.source() + " " + route.region(), 1, Integer::sum);
        } else {
          assertThat(plan.from().localRegion(plan.shape(), route.source()).isEmpty()).isTrue();
        }
      } else {
        for (int rank : route.sources()) {
          if (rank != route.source()) {
            wanted.merge(rank + " " + route.region(), 1, Integer::sum);
          }
        }
      }
    }
    assertThat(found).isEqualTo(wanted);
  }

  @Property(tries = 300, shrinking = ShrinkingMode.OFF)
  void bucketsHoldEveryRouteOnceAndKeepTheirSize(@ForAll long seed) {
    RandomLayouts random = new RandomLayouts(seed, 12);
    Layout from = random.layout(2, true);
    Layout to = random.layout(2, false);
    List<Plan> plans = new ArrayList<>();
    for (int i = 0; i < 4; i++) {
      long[] shape = {1 + Math.floorMod(seed, 9) + i, 7};
      plans.add(
          Plan.of(
              from,
              to,
              shape,
              DType.F32,
              DType.F32,
              DType.F32,
              PlanOptions.defaults().withTurn(i)));
    }
    for (long bucketBytes : new long[] {1, 60, 1 << 20}) {
      List<Plan> sized = PlanTest.withBucketBytes(bucketBytes, plans);
      List<Bucket> all = Bucket.pack(sized);
      int routes = 0;
      for (Bucket bucket : all) {
        routes += bucket.entries().size();
        long bytes = bucket.entries().stream().mapToLong(e -> e.route().bytes()).sum();
        assertThat(bucket.bytes()).isEqualTo(bytes);
        assertThat(bucket.entries().size() == 1 || bytes <= bucketBytes).isTrue();
        assertThat(bucketBytes > 1 || bucket.entries().size() == 1).isTrue();
      }
      assertThat(routes).isEqualTo(plans.stream().mapToInt(plan -> plan.routes().size()).sum());
      for (int rank : to.mesh().ranks()) {
        assertThat(contents(Bucket.pack(sized, rank)))
            .isEqualTo(contents(all.stream().filter(b -> touches(b, rank)).toList()));
      }
    }
  }

  @Property(tries = 1000, shrinking = ShrinkingMode.OFF)
  void stagingKeepsToTwoBucketsForEachPeer(@ForAll long seed) {
    RandomLayouts random = new RandomLayouts(seed, 16);
    long bucketBytes = List.of(1L, 64L, 100L, 1000L).get(Math.floorMod(seed, 4));
    List<Plan> plans = new ArrayList<>();
    for (int i = 0; i < 6; i++) {
      long[] shape = random.shape(3, 600);
      Layout from = random.layout(shape.length, false);
      Layout to = random.layout(shape.length, false);
      DType wire = List.of(DType.F64, DType.F32, DType.BF16, DType.F8E4M3).get(i % 4);
      PlanOptions options = new PlanOptions(TransferMode.STAGED, bucketBytes, i);
      plans.add(Plan.of(from, to, shape, DType.F32, wire, DType.F32, options));
    }
    long most = (Math.max(bucketBytes, DType.F64.bytes()) + 63) / 64 * 64;
    for (int rank = 0; rank < 64; rank++) {
      Set<Integer> peers = new HashSet<>();
      for (Bucket bucket : Bucket.pack(plans, rank)) {
        if (bucket.source() == rank && bucket.transport() != Transport.LOCAL) {
          peers.addAll(bucket.targets());
        }
      }
      assertThat(Plan.stagingBytes(plans, rank)).isLessThanOrEqualTo(2 * most * peers.size());
    }
  }

  private static List<List<Bucket.Entry>> contents(List<Bucket> buckets) {
    return buckets.stream().map(Bucket::entries).toList();
  }

  private static boolean touches(Bucket bucket, int rank) {
    return bucket.source() == rank || bucket.targets().contains(rank);
  }

  private static Plan plan(long seed, int maxRanks, int maxDims, long maxNumel) {
    RandomLayouts random = new RandomLayouts(seed, maxRanks);
    long[] shape = random.shape(maxDims, maxNumel);
    Layout from = random.layout(shape.length, true);
    Layout to = random.layout(shape.length, false);
    PlanOptions options = PlanOptions.defaults().withTurn(Math.floorMod(seed, 5));
    return Plan.of(from, to, shape, DType.F32, DType.F32, DType.F32, options);
  }

  private static void requireRestrictions(Plan plan) {
    List<Route> all = plan.routes();
    assertThat(plan.routes()).isEqualTo(all);
    int highest = Math.max(plan.from().mesh().highestRank(), plan.to().mesh().highestRank());
    for (int rank = 0; rank <= highest + 1; rank++) {
      int asked = rank;
      List<Route> expected =
          all.stream().filter(r -> r.source() == asked || r.targets().contains(asked)).toList();
      assertThat(plan.routesFor(rank)).as("rank %d of %s", rank, plan).isEqualTo(expected);
    }
  }

  private static void requireEvenSending(Plan plan) {
    Map<List<List<Long>>, Map<Integer, Long>> sent = new HashMap<>();
    Map<List<List<Long>>, Long> largest = new HashMap<>();
    for (int rank : plan.from().mesh().ranks()) {
      List<List<Long>> held = DistributionReference.held(plan.from(), rank, plan.shape());
      sent.computeIfAbsent(held, h -> new HashMap<>()).put(rank, 0L);
    }
    for (Route route : plan.routes()) {
      if (route.transport() == Transport.P2P || route.transport() == Transport.BROADCAST) {
        List<List<Long>> held =
            DistributionReference.held(plan.from(), route.source(), plan.shape());
        sent.get(held).merge(route.source(), route.numel() * route.targets().size(), Long::sum);
        largest.merge(held, route.numel(), Math::max);
      }
    }
    sent.forEach(
        (held, bySender) -> {
          double even =
              bySender.values().stream().mapToLong(Long::longValue).sum()
                  / (double) bySender.size();
          long slack = largest.getOrDefault(held, 0L);
          bySender.forEach(
              (rank, elements) ->
                  assertThat(Math.abs(elements - even))
                      .as("rank %d sends %d of %s in %s", rank, elements, bySender, plan)
                      .isLessThanOrEqualTo(slack));
        });
  }
}
