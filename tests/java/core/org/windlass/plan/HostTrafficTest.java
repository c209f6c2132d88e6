// SPDX-License-Identifier: Apache-2.0
package org.windlass.plan;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.util.ArrayList;
import java.util.Collection;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Random;
import java.util.Set;
import java.util.TreeMap;
import org.junit.jupiter.api.Test;
import org.windlass.DType;
import org.windlass.error.InvalidArgumentException;
import org.windlass.internal.Shapes;
import org.windlass.layout.Layout;
import org.windlass.layout.Region;
import org.windlass.layout.TensorSpec;
import org.windlass.testing.DistributionReference;
import org.windlass.testing.RandomLayouts;
import org.windlass.testing.RandomSeeds;

/** What crosses between hosts, against sets of elements that are counted one by one. */
class HostTrafficTest {
  /** An element, by its global coordinates, that a host needs from another. */
  private record Crossing(List<Long> element, int host) {}

  private static Plan plan(Layout from, Layout to, PlanOptions options, long... shape) {
    return Plan.of(from, to, shape, DType.F32, DType.F32, DType.F32, options);
  }

  private static Plan plan(String from, String to, Hosts hosts, long... shape) {
    PlanOptions options = PlanOptions.defaults().withHosts(hosts);
    return plan(Layout.parse(from), Layout.parse(to), options, shape);
  }

  @Test
  void whatRanksOfAHostShareCrossesOnce() {
    Plan plan = plan("2:S0", "4@2:R", Hosts.of(0, 0, 1, 1, 1, 2), 1024);
    assertThat(plan.routes().stream().map(Route::toString))
        .containsExactly(
            "BROADCAST 0 -> [2, 3, 4, 5] [0,512)", "BROADCAST 1 -> [2, 3, 4, 5] [512,1024)");
    HostTraffic traffic = plan.totals().hosts();
    assertThat(traffic.between())
        .containsExactly(new Traffic.Link(0, 1, 4096), new Traffic.Link(0, 2, 4096));
    assertThat(traffic.within())
        .containsExactly(new HostTraffic.Within(1, 3 * 4096), new HostTraffic.Within(2, 4096));
    assertThat(traffic.crossBytes()).isEqualTo(8192);
    assertThat(plan.totals().sentBytes()).isEqualTo(4 * 4096);
  }

  @Test
  void replicasShareTheHostsThatNeedTheirs() {
    Plan plan = plan("2:R", "6@2:R", Hosts.of(0, 1, 2, 3, 2, 3, 2, 3), 1 << 18);
    assertThat(plan.routes().stream().map(Route::toString))
        .containsExactly(
            "BROADCAST 0 -> [2, 3, 4, 5, 6, 7] [0,131072)",
            "BROADCAST 1 -> [2, 3, 4, 5, 6, 7] [131072,262144)");
    Plan small = plan("2:R", "6@2:R", Hosts.of(0, 1, 2, 3, 2, 3, 2, 3), 100);
    assertThat(small.routes().stream().map(Route::toString))
        .containsExactly("BROADCAST 0 -> [2, 4, 6] [0,100)", "BROADCAST 1 -> [3, 5, 7] [0,100)");
  }

  @Test
  void stagedTermsAreReducedBeforeTheyCross() {
    Hosts hosts = Hosts.of(0, 0, 1, 1);
    Plan direct = plan("2:P", "2@2:R", hosts, 1024);
    assertThat(direct.totals().hosts().crossBytes()).isEqualTo(2 * 4096);
    Plan staged = PlanTest.inMode(TransferMode.STAGED, direct);
    assertThat(staged.totals().hosts().crossBytes()).isEqualTo(4096);
    Plan cast =
        Plan.of(
            direct.from(),
            Layout.parse("2@2:R"),
            direct.shape(),
            DType.F32,
            DType.BF16,
            DType.BF16,
            staged.options());
    assertThat(cast.totals().hosts().crossBytes()).isEqualTo(2048);
  }

  @Test
  void theRootOfAGatheringSendsTheWholeToEachHostOnce() {
    Plan plan = plan("2:S0", "4@2:S0", Hosts.of(0, 1, 1, 1, 2, 2), 1024);
    HostTraffic gathered =
        PlanTest.inMode(TransferMode.GATHER_BROADCAST, plan).totals().hosts();
    assertThat(gathered.between())
        .containsExactly(
            new Traffic.Link(0, 1, 4096),
            new Traffic.Link(0, 2, 4096),
            new Traffic.Link(1, 0, 2048));
  }

  /** Elements that a host needs and has not, each once, are what crosses. */
  @RandomSeeds(value = 300, inLong = 3000)
  void eachElementCrossesOnceToAHostThatNeedsIt(long seed) {
    RandomLayouts random = new RandomLayouts(seed, 16);
    long[] shape = random.shape(4, 2000);
    TensorSpec before = random.spec("w", DType.F32, false, shape);
    TensorSpec after = random.spec("w", DType.F32, false, shape);
    Layout from = before.layout();
    Layout to = after.layout();
    Hosts hosts = random.hosts(from, to);
    PlanOptions options =
        PlanOptions.defaults().withTurn(Math.floorMod(seed, 5)).withHosts(hosts);
    Plan plan = Plan.of(before, after, DType.F32, options);
    Set<Crossing> held = new HashSet<>();
    for (int rank : from.mesh().ranks()) {
      for (List<Long> element : elements(from, rank, plan.paddedFrom(), shape)) {
        held.add(new Crossing(element, hosts.hostOf(rank)));
      }
    }
    Set<Crossing> needed = new HashSet<>();
    Map<Integer, Long> within = new TreeMap<>();
    for (int rank : to.mesh().ranks()) {
      for (List<Long> element : elements(to, rank, plan.paddedTo(), shape)) {
        needed.add(new Crossing(element, hosts.hostOf(rank)));
        within.merge(hosts.hostOf(rank), 4L, Long::sum);
      }
    }
    needed.removeAll(held);
    HostTraffic traffic = plan.totals().hosts();
    assertThat(traffic.crossBytes()).as("%s, %s", plan, hosts).isEqualTo(4L * needed.size());
    assertThat(traffic.within())
        .isEqualTo(
            within.entrySet().stream()
                .map(e -> new HostTraffic.Within(e.getKey(), e.getValue()))
                .toList());
    // The same by routes, and in each direction.
    Map<List<Integer>, Long> between = new HashMap<>();
    for (Route route : plan.routes()) {
      for (int target : route.targets()) {
        for (List<Long> element : elements(route.region())) {
          int host = hosts.hostOf(target);
          if (host != hosts.hostOf(route.source())
              && needed.remove(new Crossing(element, host))) {
            between.merge(List.of(hosts.hostOf(route.source()), host), 4L, Long::sum);
          }
        }
      }
    }
    assertThat(needed).isEmpty();
    Map<List<Integer>, Long> found = new HashMap<>();
    traffic.between().forEach(l -> found.put(List.of(l.source(), l.target()), l.bytes()));
    assertThat(found).as("%s, %s", plan, hosts).isEqualTo(between);
  }

  /** Of tensors that replicas cut among themselves, by whole regions. */
  @RandomSeeds(value = 300, inLong = 3000)
  void soItIsOfLargeTensors(long seed) {
    Random random = new Random(seed);
    RandomLayouts layouts = new RandomLayouts(seed, random.nextBoolean() ? 12 : 40);
    long[] shape = List.of(new long[] {1 << 20}, new long[] {1021, 263}).get(random.nextInt(2));
    Layout from = layouts.layout(false, shape);
    Layout to = layouts.layout(false, shape);
    Hosts hosts = layouts.hosts(from, to);
    Plan plan = plan(from, to, PlanOptions.defaults().withHosts(hosts), shape);
    Map<Region, Set<Integer>> holders = hosts(from, hosts, shape);
    Map<Region, Set<Integer>> needing = hosts(to, hosts, shape);
    long[] elements = {0};
    holders.forEach(
        (held, near) ->
            needing.forEach(
                (wanted, all) -> {
                  long far = all.stream().filter(host -> !near.contains(host)).count();
                  elements[0] += far * Shapes.numel(SendingTest.common(held, wanted));
                }));
    assertThat(plan.totals().hosts().crossBytes())
        .as("%s, %s", plan, hosts)
        .isEqualTo(4 * elements[0]);
    PlanPropertyTest.requireRestrictions(plan);
  }

  /** The hosts that have each part. */
  private static Map<Region, Set<Integer>> hosts(Layout layout, Hosts hosts, long[] shape) {
    Map<Region, Set<Integer>> found = new HashMap<>();
    for (int rank : layout.mesh().ranks()) {
      found
          .computeIfAbsent(layout.localRegion(shape, rank), r -> new HashSet<>())
          .add(hosts.hostOf(rank));
    }
    return found;
  }

  private static Collection<List<Long>> elements(
      Layout layout, int rank, long[] padded, long[] shape) {
    List<List<Long>> held = new ArrayList<>(DistributionReference.held(layout, rank, padded));
    for (int d = 0; d < shape.length; d++) {
      long extent = shape[d];
      held.set(d, held.get(d).stream().filter(i -> i < extent).toList());
    }
    return product(held);
  }

  private static Collection<List<Long>> elements(Region region) {
    List<List<Long>> held = new ArrayList<>();
    for (int d = 0; d < region.ndim(); d++) {
      List<Long> indices = new ArrayList<>();
      for (Region.Interval interval : region.intervals(d)) {
        for (long i = interval.start(); i < interval.end(); i++) {
          indices.add(i);
        }
      }
      held.add(indices);
    }
    return product(held);
  }

  private static Collection<List<Long>> product(List<List<Long>> indices) {
    List<List<Long>> elements = List.of(List.of());
    for (List<Long> ofDim : indices) {
      List<List<Long>> longer = new ArrayList<>();
      for (List<Long> element : elements) {
        for (long index : ofDim) {
          List<Long> more = new ArrayList<>(element);
          more.add(index);
          longer.add(more);
        }
      }
      elements = longer;
    }
    return elements;
  }

  @Test
  void hostsHaveNumbersByTheirLowestRanks() {
    Hosts hosts = Hosts.of(9, 4, 9, -1);
    assertThat(List.of(hosts.hostOf(0), hosts.hostOf(1), hosts.hostOf(2), hosts.hostOf(3)))
        .containsExactly(0, 1, 0, 2);
    assertThat(hosts).isEqualTo(Hosts.of(0, 1, 0, 2)).hasToString("hosts [0, 1, 0, 2]");
    assertThat(Hosts.of(3, 3)).isEqualTo(Hosts.one()).isEqualTo(Hosts.ofEach(1 << 20));
    assertThat(Hosts.ofEach(4).hostOf(11)).isEqualTo(2);
    assertThat(Hosts.ofEach(4)).hasToString("hosts of 4 ranks").isNotEqualTo(Hosts.ofEach(5));
    assertThatThrownBy(() -> hosts.hostOf(4))
        .isInstanceOf(InvalidArgumentException.class)
        .hasMessageContaining("rank 4 has no host")
        .hasMessageContaining("ranks 0 to 3");
    assertThatThrownBy(Hosts::of)
        .isInstanceOf(InvalidArgumentException.class)
        .hasMessageContaining("is empty");
    assertThatThrownBy(() -> plan("2:R", "4@2:R", Hosts.of(0, 1, 1, 0), 8))
        .isInstanceOf(InvalidArgumentException.class)
        .hasMessageContaining("has rank 5, whose host is not known");
  }
}
