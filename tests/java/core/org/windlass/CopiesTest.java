// SPDX-License-Identifier: Apache-2.0
package org.windlass;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.util.ArrayList;
import java.util.List;
import java.util.Optional;
import org.junit.jupiter.api.Test;
import org.windlass.error.DeadlineExceededException;
import org.windlass.error.InvalidArgumentException;
import org.windlass.layout.DeviceMesh;
import org.windlass.layout.Layout;
import org.windlass.layout.Placement;
import org.windlass.layout.Region;
import org.windlass.layout.TensorSpec;
import org.windlass.plan.Bucket;
import org.windlass.plan.Hosts;
import org.windlass.plan.Plan;
import org.windlass.plan.PlanOptions;
import org.windlass.plan.Route;
import org.windlass.plan.Traffic;
import org.windlass.report.Report;

/** Values keep what they were made of, whatever becomes of the arrays and collections. */
class CopiesTest {
  @Test
  void arraysAreCopied() {
    long[] bounds = {0, 2};
    long[][] dimensions = {bounds};
    Region region = new Region(dimensions);
    bounds[1] = 9;
    dimensions[0] = new long[] {0, 7};
    assertThat(region).isEqualTo(new Region(new long[] {0, 2}));
    int[] numbers = {2, 3};
    DeviceMesh named = DeviceMesh.of(List.of("a", "b"), numbers);
    DeviceMesh mesh = DeviceMesh.of(numbers);
    numbers[0] = 9;
    assertThat(mesh).isEqualTo(DeviceMesh.of(2, 3));
    assertThat(named.size(0)).isEqualTo(2);
    int[] ranks = {4, 2};
    DeviceMesh listed = DeviceMesh.of(2).ranks(ranks);
    ranks[0] = 7;
    listed.coordinates(4)[0] = 1;
    assertThat(listed.ranks()).containsExactly(4, 2);
    assertThat(listed.coordinates(4)).containsExactly(0);
    long[] shape = {2, 2};
    Tensor tensor = Tensor.allocate(DType.F32, shape);
    TensorSpec spec = TensorSpec.of("w", DType.F32, Layout.parse("1:R"), shape);
    Plan plan = Plan.of(spec.layout(), spec.layout(), shape, DType.F32);
    shape[0] = 9;
    tensor.shape()[0] = 9;
    plan.shape()[0] = 9;
    spec.extents()[0] = 9;
    assertThat(tensor.shape()).containsExactly(2, 2);
    assertThat(plan.shape()).containsExactly(2, 2);
    assertThat(spec.extents()).containsExactly(2, 2);
    assertThat(plan.routes().get(0).region()).isEqualTo(new Region(new long[] {0, 2}, new long[] {0, 2}));
  }

  @Test
  void collectionsAreCopied() {
    List<Placement> placements = new ArrayList<>(List.of(Placement.replicate()));
    Layout layout = new Layout(DeviceMesh.of(1), placements);
    List<Long> shape = new ArrayList<>(List.of(2L));
    TensorSpec spec = new TensorSpec("w", shape, DType.F32, layout, shape);
    List<Traffic.Link> links = new ArrayList<>(List.of(new Traffic.Link(0, 1, 8)));
    Traffic traffic = new Traffic(links, links);
    List<Integer> faultyRanks = new ArrayList<>(List.of(1));
    DeadlineExceededException timeout =
        new DeadlineExceededException("late", null, "barrier", faultyRanks);
    placements.clear();
    shape.clear();
    links.clear();
    faultyRanks.clear();
    assertThat(layout.placements()).hasSize(1);
    assertThat(spec.shape()).containsExactly(2L);
    assertThat(spec.paddedShape()).containsExactly(2L);
    assertThat(traffic.links()).hasSize(1);
    assertThat(timeout.faultyRanks()).containsExactly(1);
    for (List<?> list :
        List.of(layout.placements(), spec.shape(), traffic.links(), timeout.faultyRanks())) {
      assertThatThrownBy(list::clear).isInstanceOf(UnsupportedOperationException.class);
    }
  }

  /** Replicas on two hosts: ranks are served within theirs, and across. */
  @Test
  void routesAreNotChangedByTheirReaders() {
    for (String target : List.of("8:R", "4@2:R", "8:S0", "4@8:R")) {
      Plan plan =
          Plan.of(
              TensorSpec.of("w", DType.F32, Layout.parse("4x2:R,S0"), 8, 8),
              TensorSpec.of("w", DType.F32, Layout.parse(target), 8, 8),
              DType.F32,
              PlanOptions.defaults().withHosts(Hosts.ofEach(4)));
      assertThat(plan.routes()).isNotEmpty();
      for (Route route : plan.routes()) {
        for (List<?> list : List.of(route.sources(), route.targets())) {
          assertThatThrownBy(list::clear).isInstanceOf(UnsupportedOperationException.class);
        }
      }
      for (Bucket bucket : Bucket.pack(List.of(plan))) {
        assertThatThrownBy(bucket.entries()::clear)
            .isInstanceOf(UnsupportedOperationException.class);
      }
    }
  }

  @Test
  void aReportStandsInRankOrder() {
    Report.Rank third =
        new Report.Rank(
            2, 0, false, Optional.empty(), false, List.of(), 0, Optional.empty(), List.of());
    assertThatThrownBy(() -> new Report(List.of(third), Optional.empty(), ""))
        .isInstanceOf(InvalidArgumentException.class)
        .hasMessageContaining("ranks[0] is of rank 2");
  }

  @Test
  void anIntervalEndsWhereItBeginsOrLater() {
    assertThat(new Region.Interval(3, 3).length()).isZero();
    assertThatThrownBy(() -> new Region.Interval(5, 3))
        .isInstanceOf(InvalidArgumentException.class);
    assertThatThrownBy(() -> new Region.Interval(-1, 3))
        .isInstanceOf(InvalidArgumentException.class);
  }
}
