// SPDX-License-Identifier: Apache-2.0
package org.windlass.cli.plan;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.BitSet;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.stream.IntStream;
import java.util.stream.Stream;
import org.windlass.error.InvalidArgumentException;
import org.windlass.internal.json.JsonObject;
import org.windlass.layout.DeviceMesh;
import org.windlass.layout.Layout;
import org.windlass.layout.Placement;
import org.windlass.layout.Region;
import org.windlass.plan.HostTraffic;
import org.windlass.plan.LinkSpeeds;
import org.windlass.plan.Plan;
import org.windlass.plan.Traffic;
import org.windlass.plan.Traffic.Link;

/**
 * Generates the JSON data that a {@link PlanPage} shows: meshes with their shards of a tensor, the
 * traffic between ranks, and the totals of every rank.
 */
final class PageData {
  /** Largest number of rank pairs with traffic. A larger page would keep a browser busy. */
  private static final int MOST_LINKS = 400_000;

  /**
   * Largest number of intervals of a shard in one dimension. More intervals would not be visible.
   */
  private static final int MOST_INTERVALS = 256;

  private final PlanRequest request;

  /** Index in {@link #layouts} of each layout and shape, keyed by their text. */
  private final Map<String, Integer> layoutPlaces = new HashMap<>();

  private final List<Map<String, Object>> layouts = new ArrayList<>();
  private final List<Plan> plans = new ArrayList<>();
  private int links;

  PageData(PlanRequest request) {
    this.request = request;
  }

  String json(List<PlannedTensor> tensors) {
    return JsonObject.line(
        JsonObject.of(
            "rank", request.rank(),
            "mode", request.options().mode(),
            "tensors", tensors.stream().map(this::json).toList(),
            "staged", request.stagingBytes(plans),
            "hosts",
                request.hosts().isEmpty() && request.speeds().isEmpty()
                    ? Optional.empty()
                    : hosts(tensors),
            "layouts", layouts));
  }

  private Map<String, Object> hosts(List<PlannedTensor> tensors) {
    HostTraffic traffic = request.totals(plans).hosts();
    BitSet ranks = new BitSet();
    tensors.forEach(tensor -> tensor.addRanks(ranks));
    Optional<LinkSpeeds.Prediction> predicted = request.predict(traffic);
    return JsonObject.of(
        "count", request.count(ranks),
        "cross", traffic.crossBytes(),
        "between",
            traffic.between().stream()
                .flatMap(link -> Stream.of(link.source(), link.target(), link.bytes())),
        "ms", predicted.map(time -> time.seconds() * 1e3),
        "bound", predicted.map(LinkSpeeds.Prediction::bound));
  }

  /** Returns the JSON of a tensor, with totals over all {@code count} tensors of its kind. */
  private Map<String, Object> json(PlannedTensor tensor) {
    List<Plan> same = tensor.plans(request.options(), plans.size());
    plans.addAll(same);
    Traffic traffic = request.traffic(same);
    links += traffic.links().size() + traffic.reads().size();
    if (links > MOST_LINKS) {
      throw new InvalidArgumentException(
          "--html: more than " + MOST_LINKS
              + " pairs of ranks exchange bytes; show fewer tensors, or one --rank");
    }
    return JsonObject.of(
        "name", tensor.name(),
        "count", tensor.count(),
        "shape", Arrays.stream(tensor.shape()),
        "dtype", tensor.dtype(),
        "wire", tensor.wire(),
        "from", layout(tensor.from(), tensor.shape()),
        "to", layout(tensor.to(), tensor.shape()),
        "reduced", request.totals(same).reduceBytes(),
        "links", numbers(traffic.links()),
        "reads", numbers(traffic.reads()));
  }

  private static Stream<?> numbers(List<Traffic.Link> links) {
    return links.stream().flatMap(link -> Stream.of(link.source(), link.target(), link.bytes()));
  }

  private int layout(Layout layout, long[] shape) {
    return layoutPlaces.computeIfAbsent(
        layout.qualified() + Arrays.toString(shape),
        key -> {
          layouts.add(json(layout, shape));
          return layouts.size() - 1;
        });
  }

  /**
   * Returns the JSON of a layout: mesh, placements and shards. For each dimension, it has the
   * different lists of intervals. For each rank, in mesh order, it has the index of the rank's
   * list.
   */
  private static Map<String, Object> json(Layout layout, long[] shape) {
    DeviceMesh mesh = layout.mesh();
    List<Map<List<Region.Interval>, Integer>> parts = new ArrayList<>();
    Arrays.stream(shape).forEach(extent -> parts.add(new LinkedHashMap<>()));
    List<List<Integer>> holds = new ArrayList<>();
    for (int rank : mesh.ranks()) {
      Region region = layout.localRegion(shape, rank);
      List<Integer> held = new ArrayList<>();
      for (int d = 0; d < shape.length; d++) {
        Map<List<Region.Interval>, Integer> known = parts.get(d);
        held.add(known.computeIfAbsent(region.intervals(d), part -> known.size()));
      }
      holds.add(held);
    }
    return JsonObject.of(
        "text", layout,
        "mesh", IntStream.range(0, mesh.ndim()).mapToObj(m -> json(layout, m)),
        "ranks", mesh.ranks(),
        "holds", holds,
        "parts", parts.stream().map(known -> known.keySet().stream().map(PageData::bounds)));
  }

  private static Map<String, Object> json(Layout layout, int dimension) {
    Placement placement = layout.placements().get(dimension);
    return JsonObject.of(
        "name", layout.mesh().name(dimension),
        "size", layout.mesh().size(dimension),
        "placement", placement,
        "partial", placement instanceof Placement.Partial);
  }

  private static Stream<Long> bounds(List<Region.Interval> intervals) {
    return intervals.stream()
        .limit(MOST_INTERVALS)
        .flatMap(interval -> Stream.of(interval.start(), interval.end()));
  }
}
