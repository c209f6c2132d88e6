// SPDX-License-Identifier: Apache-2.0
package org.windlass.plan;

import static org.assertj.core.api.Assertions.assertThat;

import java.util.ArrayList;
import java.util.List;
import org.windlass.DType;
import org.windlass.internal.Shapes;
import org.windlass.internal.Steps;
import org.windlass.layout.Layout;
import org.windlass.layout.TensorSpec;
import org.windlass.testing.RandomLayouts;
import org.windlass.testing.RandomSeeds;

/** What ranks read of other hosts by their schedules is what the plan says has to cross. */
class RelaysTest {
  @RandomSeeds(value = 300, inLong = 3000)
  void schedulesCrossWhatThePlanSays(long seed) {
    RandomLayouts random = new RandomLayouts(seed, 12);
    long[] shape = random.shape(4, 2000);
    TensorSpec from = random.spec("w", DType.F32, true, shape);
    TensorSpec to = random.spec("w", DType.F32, false, shape);
    Hosts hosts = random.hosts(from.layout(), to.layout());
    for (TransferMode mode : TransferMode.values()) {
      PlanOptions options =
          PlanOptions.defaults()
              .withMode(mode)
              .withBucketBytes(List.of(1L, 100L, 1L << 20).get(Math.floorMod(seed, 3)))
              .withHosts(hosts);
      Plan plan = Plan.of(from, to, DType.BF16, options);
      assertThat(crossed(plan, hosts, from.layout(), to.layout()))
          .as("%s, %s, %s", plan, mode, hosts)
          .isEqualTo(plan.totals().hosts().crossBytes());
    }
  }

  private static long crossed(Plan plan, Hosts hosts, Layout... layouts) {
    List<Integer> ranks = new ArrayList<>();
    for (Layout layout : layouts) {
      layout.mesh().ranks().stream().filter(rank -> !ranks.contains(rank)).forEach(ranks::add);
    }
    long[] bytes = {0};
    for (int rank : ranks) {
      Schedule.of(
          List.of(plan),
          rank,
          new Steps() {
            @Override
            public void stage(
                int phase, int dtype, long[] shape, long offset, List<Integer> readers) {}

            @Override
            public void write(
                int phase,
                Place target,
                long[] length,
                List<Integer> sources,
                Place source,
                int wire,
                int op) {
              DType dtype = source.view() < 0 ? plan.wire() : plan.dtype();
              for (int each : sources) {
                boolean isFar = !hosts.areTogether(each, rank);
                bytes[0] += isFar ? dtype.bytesOf(Shapes.numel(length)) : 0;
              }
            }
          });
    }
    return bytes[0];
  }
}
