// SPDX-License-Identifier: Apache-2.0
package org.windlass.plan;

import static org.assertj.core.api.Assertions.assertThat;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.Comparator;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;
import org.windlass.DType;
import org.windlass.layout.Layout;
import org.windlass.layout.Region;
import org.windlass.layout.TensorSpec;
import org.windlass.testing.DistributionReference;
import org.windlass.testing.RandomLayouts;
import org.windlass.testing.RandomSeeds;

/** Random layout pairs, shapes and paddings against the slow reference. */
class PlanPropertyTest {
  @RandomSeeds(value = 100, inLong = 3000)
  void everyTargetElementIsWrittenOnceWithTheRightValue(long seed) {
    Plan plan = plan(seed, 16, 12, 2500);
    new PlanSimulation(plan).check();
    new PlanSimulation(PlanTest.inMode(TransferMode.GATHER_BROADCAST, plan)).check();
  }

  @RandomSeeds(value = 20, inLong = 1000)
  void largeMeshesToo(long seed) {
    Plan plan = plan(seed, 512, 12, 800);
    new PlanSimulation(plan).check();
    requireEvenSending(plan);
  }

  @RandomSeeds(value = 5, inLong = 150)
  void aRankOfALargeMeshFindsItsRoutesByItself(long seed) {
    requireRestrictions(plan(seed, 512, 4, 800));
  }

  @RandomSeeds(value = 187, inLong = 750)
  void localTensorsAreWhatTheReferenceSays(long seed) {
    RandomLayouts random = new RandomLayouts(seed, 16);
    long[] shape = random.shape(12, 2500);
    TensorSpec spec = random.spec("w", DType.F32, true, shape);
    Layout layout = spec.layout();
    for (int rank : layout.mesh().ranks()) {
      Region region = spec.localRegion(rank);
      List<List<Long>> held = DistributionReference.held(layout, rank, spec.paddedExtents());
      for (int d = 0; d < shape.length; d++) {
        long extent = shape[d];
        List<Long> real = held.get(d).stream().filter(i -> i < extent).toList();
        List<Long> indices = new ArrayList<>();
        for (Region.Interval interval : region.intervals(d)) {
          for (long i = interval.start(); i < interval.end(); i++) {
            indices.add(i);
          }
        }
        assertThat(indices).as("%s, rank %d, dimension %d", spec, rank, d).isEqualTo(real);
        assertThat(spec.localShape(rank)[d]).isEqualTo(held.get(d).size());
      }
    }
  }

  /** What data parallel ranks cut of tensor parallel ones, from and to other layouts. */
  @ParameterizedTest
  @ValueSource(ints = {1, 2, 3, 4, 5})
  void elementsCutTwiceAllArrive(int data) {
    for (int tensor = 1; tensor <= 5; tensor++) {
      Layout twice = Layout.parse(data + "x" + tensor + ":SS0/" + tensor + ",S0");
      List<Layout> others =
          List.of(
              Layout.parse("3@2:S0"),
              Layout.parse("2x2:R,S0"),
              Layout.parse(tensor + "x" + data + "@1:SS0/" + data + ",S0"));
      for (int extent = 0; extent <= 40; extent++) {
        for (Layout other : others) {
          new PlanSimulation(Plan.of(twice, other, new long[] {extent}, DType.F32)).check();
          new PlanSimulation(Plan.of(other, twice, new long[] {extent}, DType.F32)).check();
        }
      }
    }
  }

  @RandomSeeds(value = 125, inLong = 500)
  void aRankFindsItsRoutesByItself(long seed) {
    Plan plan = plan(seed, 16, 4, 2500);
    requireRestrictions(plan);
    requireRestrictions(PlanTest.inMode(TransferMode.GATHER_BROADCAST, plan));
  }

  @RandomSeeds(value = 125, inLong = 500)
  void replicasSendEqualShares(long seed) {
    requireEvenSending(plan(seed, 16, 4, 2500));
  }

  @RandomSeeds(value = 125, inLong = 500)
  void aRankThatHoldsItsRegionCopiesItLocally(long seed) {
    Plan plan = plan(seed, 16, 3, 600);
    for (Route route : plan.routes()) {
      for (int target : route.targets()) {
        boolean local = route.transport() == Transport.LOCAL;
        assertThat(local).isEqualTo(target == route.source());
        if (!local && plan.from().mesh().contains(target)) {
          assertThat(heldOfSource(plan, target)).isNotEqualTo(heldOfSource(plan, route.source()));
        }
      }
      int targets = route.targets().size();
      assertThat(route.transport() == Transport.BROADCAST).isEqualTo(targets > 1);
      assertThat(route.transport() == Transport.NONE).isEqualTo(targets == 0);
    }
  }

  @RandomSeeds(value = 125, inLong = 500)
  void everyTermOfAReductionHasItsRoute(long seed) {
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
          Region held =
              TensorSpec.of("", plan.dtype(), plan.from(), plan.shape())
                  .padded(plan.paddedFrom())
                  .localRegion(route.source());
          assertThat(held.isEmpty()).isTrue();
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

  @RandomSeeds(value = 50, inLong = 1000)
  void bucketsHoldEveryRouteOnceAndKeepTheirSize(long seed) {
    RandomLayouts random = new RandomLayouts(seed, 12);
    long[][] shapes = new long[4][];
    Arrays.setAll(shapes, i -> new long[] {1 + Math.floorMod(seed, 9) + i, 7});
    Layout from = random.layout(true, shapes);
    Layout to = random.layout(false, shapes);
    List<Plan> plans = new ArrayList<>();
    for (int i = 0; i < 4; i++) {
      plans.add(
          Plan.of(
              from,
              to,
              shapes[i],
              DType.F32,
              DType.F32,
              DType.F32,
              PlanOptions.defaults().withTurn(i)));
    }
    for (long bucketBytes : new long[] {1, 60, 1 << 20}) {
      List<Plan> sized = PlanTest.withBucketBytes(bucketBytes, plans);
      List<Bucket> all = Bucket.pack(sized);
      int routes = 0;
      Map<List<Object>, Bucket> last = new HashMap<>();
      for (Bucket bucket : all) {
        routes += bucket.entries().size();
        long bytes = bucket.entries().stream().mapToLong(e -> e.route().bytes()).sum();
        assertThat(bucket.bytes()).isEqualTo(bytes);
        assertThat(bucket.entries().size() == 1 || bytes <= bucketBytes).isTrue();
        assertThat(bucketBytes > 1 || bucket.entries().size() == 1).isTrue();
        Bucket before = last.put(kind(bucket), bucket);
        long first = Math.max(1, bucket.entries().get(0).route().bytes());
        boolean hasRoom = before != null && Math.max(1, before.bytes()) + first <= bucketBytes;
        assertThat(hasRoom).isFalse();
      }
      assertThat(routes).isEqualTo(plans.stream().mapToInt(plan -> plan.routes().size()).sum());
      for (int rank : to.mesh().ranks()) {
        assertThat(contents(Bucket.pack(sized, rank)))
            .isEqualTo(contents(all.stream().filter(b -> touches(b, rank)).toList()));
      }
    }
  }

  private static List<Object> kind(Bucket bucket) {
    boolean sends = bucket.transport() != Transport.NONE;
    return List.of(
        bucket.source(),
        bucket.transport(),
        bucket.targets(),
        bucket.entries().get(0).route().sources(),
        sends ? "" : bucket.entries().get(0).route().region());
  }

  @RandomSeeds(value = 33, inLong = 1000)
  void totalsAreTheSumsOfWhatMovesAndTheNumberOfBuckets(long seed) {
    List<Plan> any = List.of(plan(seed, 16, 4, 600), plan(~seed, 16, 4, 600));
    for (TransferMode mode : TransferMode.values()) {
      for (long bucketBytes : new long[] {1, 60, 1 << 20}) {
        List<Plan> plans = new ArrayList<>();
        for (int i = 0; i < 4; i++) {
          Plan plan = any.get(i % 2);
          PlanOptions options = plan.options().withMode(mode).withBucketBytes(bucketBytes);
          plans.add(Plan.of(plan.source(), plan.target(), DType.F32, options.withTurn(i)));
        }
        Totals all = Totals.of(plans);
        assertThat(all).isEqualTo(totals(Traffic.ofPlans(plans), Bucket.pack(plans).size(), all));
        assertThat(all.hosts().crossBytes())
            .isEqualTo(plans.stream().mapToLong(p -> p.totals().hosts().crossBytes()).sum());
        Plan one = plans.get(0);
        assertThat(one.totals())
            .isEqualTo(totals(one.traffic(), Bucket.pack(List.of(one)).size(), one.totals()));
        int rank = Math.floorMod(seed, 16);
        assertThat(Totals.of(plans, rank))
            .isEqualTo(
                totals(
                    Traffic.ofPlans(plans, rank),
                    Bucket.pack(plans, rank).size(),
                    Totals.of(plans, rank)));
      }
    }
  }

  /** By hosts as {@code found}: {@link HostTrafficTest} holds that against a reference. */
  private static Totals totals(Traffic traffic, int buckets, Totals found) {
    return new Totals(
        sum(traffic.links(), false),
        sum(traffic.links(), true),
        sum(traffic.reads(), true) + sum(traffic.reads(), false),
        buckets,
        found.hosts());
  }

  private static long sum(List<Traffic.Link> links, boolean isOfOneRank) {
    return links.stream()
        .filter(link -> (link.source() == link.target()) == isOfOneRank)
        .mapToLong(Traffic.Link::bytes)
        .sum();
  }

  @RandomSeeds(value = 50, inLong = 1000)
  void trafficIsWhatRoutesSay(long seed) {
    List<Plan> plans = List.of(plan(seed, 40, 3, 2000), plan(~seed, 40, 3, 2000));
    Map<List<Integer>, Long> links = new HashMap<>();
    Map<List<Integer>, Long> reads = new HashMap<>();
    for (Plan plan : plans) {
      for (Route route : plan.routes()) {
        for (int target : route.targets()) {
          links.merge(List.of(route.source(), target), route.region().numel() * 4, Long::sum);
          for (int holder : route.sources()) {
            if (holder != route.source()) {
              reads.merge(List.of(holder, target), route.region().numel() * 4, Long::sum);
            }
          }
        }
      }
    }
    Traffic traffic = Traffic.ofPlans(plans);
    assertThat(traffic.links()).isEqualTo(inOrder(links));
    assertThat(traffic.reads()).isEqualTo(inOrder(reads));
    assertThat(List.of(Totals.of(plans)))
        .flatExtracting(Totals::sentBytes, Totals::localBytes, Totals::reduceBytes)
        .containsExactly(
            sum(links, false), sum(links, true), sum(reads, true) + sum(reads, false));
  }

  private static List<Traffic.Link> inOrder(Map<List<Integer>, Long> bytesOfEnds) {
    return bytesOfEnds.entrySet().stream()
        .map(e -> new Traffic.Link(e.getKey().get(0), e.getKey().get(1), e.getValue()))
        .sorted(Comparator.comparing(link -> (long) link.source() << 32 | link.target()))
        .toList();
  }

  private static long sum(Map<List<Integer>, Long> bytesOfEnds, boolean ofOneRank) {
    return bytesOfEnds.entrySet().stream()
        .filter(e -> e.getKey().get(0).equals(e.getKey().get(1)) == ofOneRank)
        .mapToLong(Map.Entry::getValue)
        .sum();
  }

  @RandomSeeds(value = 33, inLong = 1000)
  void stagingKeepsToTwoBucketsForEachPeer(long seed) {
    RandomLayouts random = new RandomLayouts(seed, 16);
    long bucketBytes = List.of(1L, 64L, 100L, 1000L).get(Math.floorMod(seed, 4));
    List<Plan> plans = new ArrayList<>();
    for (int i = 0; i < 6; i++) {
      long[] shape = random.shape(3, 600);
      Layout from = random.layout(false, shape);
      Layout to = random.layout(false, shape);
      DType wire = List.of(DType.F64, DType.F32, DType.BF16, DType.F8E4M3).get(i % 4);
      PlanOptions options =
          PlanOptions.defaults()
              .withMode(TransferMode.STAGED)
              .withBucketBytes(bucketBytes)
              .withTurn(i);
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
    TensorSpec from = random.spec("w", DType.F32, true, shape);
    TensorSpec to = random.spec("w", DType.F32, false, shape);
    return Plan.of(
        from,
        to,
        DType.F32,
        PlanOptions.defaults()
            .withTurn(Math.floorMod(seed, 5))
            .withHosts(random.hosts(from.layout(), to.layout())));
  }

  private static List<List<Long>> heldOfSource(Plan plan, int rank) {
    return DistributionReference.held(plan.from(), rank, plan.paddedFrom());
  }

  static void requireRestrictions(Plan plan) {
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

  /**
   * Who may send to a rank: the replicas on its host, where there are some, else all, which send to
   * its host.
   */
  record Sharing(List<Integer> senders, boolean crosses) {
    static Sharing of(Plan plan, List<Integer> replicas, int target) {
      Hosts hosts = plan.options().hosts();
      List<Integer> near =
          replicas.stream().filter(r -> hosts.of(r) == hosts.of(target)).toList();
      return near.isEmpty() ? new Sharing(replicas, true) : new Sharing(near, false);
    }
  }

  /**
   * Checks that ranks of a host where a replica is get theirs from there, and that replicas share
   * the ranks of one host, and all hosts without a replica, to within one region.
   */
  private static void requireEvenSending(Plan plan) {
    Map<List<List<Long>>, List<Integer>> replicas = new HashMap<>();
    Map<Integer, List<Integer>> replicasOf = new HashMap<>();
    for (int rank : plan.from().mesh().ranks()) {
      List<Integer> same =
          replicas.computeIfAbsent(heldOfSource(plan, rank), h -> new ArrayList<>());
      same.add(rank);
      replicasOf.put(rank, same);
    }
    Map<Sharing, Map<Integer, Long>> sent = new HashMap<>();
    Map<Sharing, Long> largest = new HashMap<>();
    for (Route route : plan.routes()) {
      if (route.transport() == Transport.P2P || route.transport() == Transport.BROADCAST) {
        Set<Integer> crossed = new HashSet<>();
        for (int target : route.targets()) {
          Sharing sharing = Sharing.of(plan, replicasOf.get(route.source()), target);
          if (sharing.crosses() && !crossed.add(plan.options().hosts().of(target))) {
            continue;
          }
          sent.computeIfAbsent(sharing, s -> new HashMap<>())
              .merge(route.source(), route.numel(), Long::sum);
          largest.merge(sharing, route.numel(), Math::max);
        }
      }
    }
    sent.forEach(
        (sharing, bySender) -> {
          List<Integer> senders = sharing.senders();
          assertThat(senders).as("%s", plan).containsAll(bySender.keySet());
          long all = bySender.values().stream().mapToLong(Long::longValue).sum();
          double even = all / (double) senders.size();
          for (int rank : senders) {
            long elements = bySender.getOrDefault(rank, 0L);
            if (Math.abs(elements - even) > largest.get(sharing)) {
              throw new AssertionError(
                  String.format(
                      "rank %d of %s sends %d elements, %.1f are even: %s",
                      rank, senders, elements, even, plan));
            }
          }
        });
  }
}
