// SPDX-License-Identifier: Apache-2.0
package org.windlass.transfer;

import static org.assertj.core.api.Assertions.assertThat;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Random;
import org.junit.jupiter.api.Test;
import org.windlass.Communicator;
import org.windlass.DType;
import org.windlass.LocalGroup;
import org.windlass.Tensor;
import org.windlass.internal.Shapes;
import org.windlass.layout.Layout;
import org.windlass.layout.Region;
import org.windlass.layout.TensorSpec;
import org.windlass.plan.Hosts;
import org.windlass.plan.Plan;
import org.windlass.plan.PlanOptions;
import org.windlass.plan.Route;
import org.windlass.plan.TransferMode;
import org.windlass.testing.CutReference;
import org.windlass.testing.DistributionReference;
import org.windlass.testing.RandomLayouts;
import org.windlass.testing.RandomSeeds;

/**
 * Transfers whose replicas differ, so that what arrives tells who sent it: on every rank and in
 * every mode that is whom the plan's routes name. What is expected is made of {@link Plan#routes}
 * alone, by {@link DistributionReference}.
 */
class RoutesTest {
  /** Large enough that regions are cut and items are shared. */
  private static final List<long[]> LARGE_SHAPES =
      List.of(
          new long[] {140_003},
          new long[] {384, 400},
          new long[] {3, 45_000},
          new long[] {2, 3, 25_001},
          new long[] {64, 5, 450});

  @RandomSeeds(20)
  void targetsHoldWhatTheRoutesSay(long seed) {
    Random random = new Random(seed);
    RandomLayouts layouts = new RandomLayouts(seed, 12);
    Hosts hosts = hosts(random);
    List<Plan> plans = new ArrayList<>();
    for (int i = 0; i < 6; i++) {
      plans.addAll(inAllModes(random, layouts, hosts, layouts.shape(4, 600), plans.size()));
    }
    check(plans);
  }

  @RandomSeeds(2)
  void largeTargetsToo(long seed) {
    Random random = new Random(seed);
    RandomLayouts layouts = new RandomLayouts(seed, 8);
    check(inAllModes(random, layouts, hosts(random), LARGE_SHAPES.get(random.nextInt(5)), 0));
  }

  /** Of more ranks than layouts have. */
  private static Hosts hosts(Random random) {
    int count = 1 + random.nextInt(4);
    return random.nextInt(3) == 0
        ? Hosts.one()
        : Hosts.of(random.ints(64, 0, count).toArray());
  }

  @Test
  void eachOfTwoPartialGroupsServesItsOwnRanks() {
    for (long extent : new long[] {12, 60_000}) {
      for (String[] layouts :
          new String[][] {
            {"2x2:R,P", "4@0:R"}, {"2x2:R,P", "4@0:S0"}, {"3x2:R,P", "1@4:R"}, {"4:R", "6@2:R"},
            {"2x4:P,S0", "3@1:R"}, {"2x2:P,R", "4@0:R"}
          }) {
        List<Plan> plans = new ArrayList<>();
        for (TransferMode mode : TransferMode.values()) {
          PlanOptions options =
              PlanOptions.defaults().withMode(mode).withTurn(plans.size()).withBucketBytes(40_000);
          Layout from = Layout.parse(layouts[0]);
          Layout to = Layout.parse(layouts[1]);
          long[] shape = {extent};
          plans.add(Plan.of(from, to, shape, DType.I64, DType.I64, DType.I64, options));
        }
        check(plans);
      }
    }
  }

  /** One plan of random layouts for each mode, of tensors {@code first} and on. */
  private static List<Plan> inAllModes(
      Random random, RandomLayouts layouts, Hosts hosts, long[] shape, int first) {
    TensorSpec from = layouts.spec("t", DType.I64, true, shape);
    while (!from.layout().partialOp().map(DType.I64::canReduce).orElse(true)) {
      from = layouts.spec("t", DType.I64, true, shape);
    }
    TensorSpec to = layouts.spec("t", DType.I64, false, shape);
    long numel = Math.max(1, Shapes.numel(shape));
    List<Plan> plans = new ArrayList<>();
    for (TransferMode mode : TransferMode.values()) {
      PlanOptions options =
          PlanOptions.defaults()
              .withMode(mode)
              .withBucketBytes(1 + numel / 4 * random.nextInt(12))
              .withHosts(hosts)
              .withTurn(first + plans.size());
      plans.add(Plan.of(from, to, DType.I64, options));
    }
    return plans;
  }

  private static void check(List<Plan> plans) {
    int highest = 0;
    for (Plan plan : plans) {
      highest = Math.max(highest, plan.from().mesh().highestRank());
      highest = Math.max(highest, plan.to().mesh().highestRank());
    }
    List<List<Route>> routes = plans.stream().map(Plan::routes).toList();
    try (LocalGroup group = LocalGroup.of(highest + 1)) {
      group.run(communicator -> run(communicator, plans, routes));
    }
  }

  private static void run(
      Communicator communicator, List<Plan> plans, List<List<Route>> routes) {
    int rank = communicator.rank();
    TransferBuilder builder = TransferBuilder.of(communicator);
    List<Tensor> targets = new ArrayList<>();
    for (int i = 0; i < plans.size(); i++) {
      Plan plan = plans.get(i);
      Tensor source = null;
      Tensor target = null;
      if (plan.from().mesh().contains(rank)) {
        source = Tensor.allocate(DType.I64, plan.from().localShape(plan.paddedFrom(), rank));
        source.copyFrom(held(plan, rank, i));
      }
      if (plan.to().mesh().contains(rank)) {
        target = Tensor.allocate(DType.I64, plan.to().localShape(plan.paddedTo(), rank));
      }
      targets.add(target);
      builder
          .hosts(plan.options().hosts())
          .defaultMode(plan.options().mode())
          .defaultBucketBytes(plan.options().bucketBytes())
          .add(
              TensorSpec.of("t" + i, DType.I64, plan.from(), plan.shape())
                  .padded(plan.paddedFrom()),
              source,
              TensorSpec.of("t" + i, DType.I64, plan.to(), plan.shape()).padded(plan.paddedTo()),
              target);
    }
    try (Transfer transfer = builder.register()) {
      transfer.run();
      for (int i = 0; i < plans.size(); i++) {
        Plan plan = plans.get(i);
        assertThat(transfer.plans().get(i).fingerprint()).isEqualTo(plan.fingerprint());
        if (targets.get(i) == null) {
          continue;
        }
        long[] expected = expected(plan, routes.get(i), rank, i);
        long[] found = new long[expected.length];
        targets.get(i).copyTo(found);
        int wrong = Arrays.mismatch(found, expected);
        if (wrong >= 0) {
          throw new AssertionError(
              String.format(
                  "%s, %s: rank %d, local element %d is %x, not %x as the routes say",
                  plan.options(),
                  plan,
                  rank,
                  wrong,
                  found[wrong],
                  expected[wrong]));
        }
      }
    }
  }

  /** What a rank holds of a tensor: it differs from element to element, and from rank to rank. */
  private static long value(int tensor, int rank, long element) {
    long mixed = (element * 1009 + rank + 1) * 0x9e3779b97f4a7c15L + tensor;
    return mixed ^ mixed >>> 29;
  }

  /** A rank's local source; its padding differs from rank to rank too. */
  private static long[] held(Plan plan, int rank, int tensor) {
    long[] shape = plan.shape();
    List<List<Long>> indices = DistributionReference.held(plan.from(), rank, plan.paddedFrom());
    long[] elements = {0};
    for (int d = 0; d < shape.length; d++) {
      long extent = plan.paddedFrom()[d];
      elements = outer(elements, indices.get(d), extent);
    }
    for (int i = 0; i < elements.length; i++) {
      elements[i] = value(tensor, rank, elements[i]);
    }
    return elements;
  }

  private static long[] outer(long[] elements, List<Long> indices, long extent) {
    long[] longer = new long[elements.length * indices.size()];
    int next = 0;
    for (long element : elements) {
      for (long index : indices) {
        longer[next++] = element * extent + index;
      }
    }
    return longer;
  }

  /** A rank's local target, as the routes into it say; its padding is zero. */
  private static long[] expected(Plan plan, List<Route> routes, int rank, int tensor) {
    long[] localShape = plan.to().localShape(plan.paddedTo(), rank);
    long[] target = new long[Math.toIntExact(Shapes.numel(localShape))];
    int[][] places = new int[localShape.length][];
    for (int d = 0; d < places.length; d++) {
      List<Long> indices =
          CutReference.held(
              plan.to(), plan.to().mesh().coordinates(rank), d, plan.paddedTo()[d]);
      places[d] = new int[Math.toIntExact(plan.paddedTo()[d])];
      for (int i = 0; i < indices.size(); i++) {
        places[d][Math.toIntExact(indices.get(i))] = i;
      }
    }
    for (Route route : routes) {
      if (route.targets().contains(rank)) {
        for (Region.Box box : route.region().boxes()) {
          write(plan, route, box, tensor, target, localShape, places);
        }
      }
    }
    return target;
  }

  private static void write(
      Plan plan,
      Route route,
      Region.Box box,
      int tensor,
      long[] target,
      long[] localShape,
      int[][] places) {
    int ndim = localShape.length;
    long[] at = box.start().clone();
    int d;
    do {
      long element = 0;
      int place = 0;
      for (d = 0; d < ndim; d++) {
        element = element * plan.paddedFrom()[d] + at[d];
        place = Math.toIntExact(place * localShape[d] + places[d][Math.toIntExact(at[d])]);
      }
      target[place] = folded(route, tensor, element);
      for (d = ndim - 1; d >= 0 && ++at[d] == box.start()[d] + box.length()[d]; d--) {
        at[d] = box.start()[d];
      }
    } while (d >= 0);
  }

  private static long folded(Route route, int tensor, long element) {
    long value = value(tensor, route.sources().get(0), element);
    for (int rank : route.sources().subList(1, route.sources().size())) {
      long term = value(tensor, rank, element);
      value =
          switch (route.op().orElseThrow()) {
            case SUM -> value + term;
            case PRODUCT -> value * term;
            case MAX -> Math.max(value, term);
            case MIN -> Math.min(value, term);
            case AND -> value & term;
            case OR -> value | term;
            case XOR -> value ^ term;
            default -> throw new AssertionError(route.op());
          };
    }
    return value;
  }
}
