// SPDX-License-Identifier: Apache-2.0
package org.windlass.cli.plan;

import com.fasterxml.jackson.core.JsonGenerator;
import java.io.IOException;
import java.io.StringWriter;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.BitSet;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.OptionalInt;
import org.windlass.cli.out.JsonLine;
import org.windlass.error.InvalidArgumentException;
import org.windlass.layout.DeviceMesh;
import org.windlass.layout.Layout;
import org.windlass.layout.Placement;
import org.windlass.layout.Region;
import org.windlass.plan.HostTraffic;
import org.windlass.plan.LinkSpeeds;
import org.windlass.plan.Plan;
import org.windlass.plan.PlanOptions;
import org.windlass.plan.Totals;
import org.windlass.plan.Traffic;
import org.windlass.plan.Traffic.Link;

/**
 * Generates the JSON data that a {@link PlanPage} shows: meshes with their shards of a tensor, the
 * traffic between ranks, and the totals of every rank.
 */
final class PageData {
  /** Largest number of links. A larger page would keep a browser busy. */
  private static final int MOST_LINKS = 400_000;

  /** Largest number of intervals of one dimension of one shard. A finer picture is not visible. */
  private static final int MOST_INTERVALS = 256;

  private final PlanOptions options;
  private final Topology topology;
  private final OptionalInt rank;

  /** Index in {@link #layouts} of each combination of layout and shape. */
  private final Map<String, Integer> layoutPlaces = new LinkedHashMap<>();

  private final StringWriter layouts = new StringWriter();
  private final List<Plan> plans = new ArrayList<>();
  private int links;

  /**
   * Creates the data of a page.
   *
   * @param topology hosts and speeds that the user gave
   * @param rank the only rank whose links are shown; empty for all
   */
  PageData(PlanOptions options, Topology topology, OptionalInt rank) {
    this.options = options;
    this.topology = topology;
    this.rank = rank;
  }

  /**
   * Returns the JSON of some tensors.
   *
   * @throws InvalidArgumentException if there are too many links to show
   */
  String json(List<PlannedTensor> tensors) {
    return JsonLine.of(
        out -> {
          if (rank.isPresent()) {
            out.writeNumberField("rank", rank.getAsInt());
          }
          out.writeArrayFieldStart("tensors");
          for (PlannedTensor tensor : tensors) {
            writeTensor(out, tensor);
          }
          out.writeEndArray();
          out.writeNumberField(
              "staged",
              rank.isPresent() ? Plan.stagingBytes(plans, rank.getAsInt()) : Plan.stagingBytes(plans));
          if (!topology.equals(Topology.NONE)) {
            writeHosts(out, tensors);
          }
          out.writeFieldName("layouts");
          out.writeRawValue("[" + layouts + "]");
        });
  }

  /** Writes the traffic between hosts, and the predicted time. */
  private void writeHosts(JsonGenerator out, List<PlannedTensor> tensors) throws IOException {
    HostTraffic traffic =
        (rank.isPresent() ? Totals.of(plans, rank.getAsInt()) : Totals.of(plans)).hosts();
    BitSet ranks = new BitSet();
    tensors.forEach(tensor -> tensor.addRanks(ranks));
    out.writeObjectFieldStart("hosts");
    out.writeNumberField("count", topology.count(ranks));
    out.writeNumberField("cross", traffic.crossBytes());
    out.writeArrayFieldStart("between");
    for (HostTraffic.Link link : traffic.between()) {
      out.writeNumber(link.source());
      out.writeNumber(link.target());
      out.writeNumber(link.bytes());
    }
    out.writeEndArray();
    Optional<LinkSpeeds.Prediction> predicted = topology.predict(traffic);
    if (predicted.isPresent()) {
      out.writeNumberField("ms", predicted.get().seconds() * 1e3);
      out.writeStringField("bound", predicted.get().bound());
    }
    out.writeEndObject();
  }

  /** Writes a tensor, with the sums over all {@code count} tensors of its kind. */
  private void writeTensor(JsonGenerator out, PlannedTensor tensor) throws IOException {
    List<Plan> same = tensor.plans(options, plans.size());
    plans.addAll(same);
    Traffic traffic =
        rank.isPresent() ? Traffic.ofPlans(same, rank.getAsInt()) : Traffic.ofPlans(same);
    links += traffic.links().size() + traffic.reads().size();
    if (links > MOST_LINKS) {
      throw new InvalidArgumentException(
          "--html: more than " + MOST_LINKS
              + " pairs of ranks exchange bytes; show fewer tensors, or one --rank");
    }
    out.writeStartObject();
    out.writeStringField("name", tensor.name());
    out.writeNumberField("count", tensor.count());
    out.writeFieldName("shape");
    out.writeArray(tensor.shape(), 0, tensor.shape().length);
    out.writeStringField("dtype", tensor.dtype().toString());
    out.writeStringField("wire", tensor.wire().toString());
    out.writeNumberField("from", layout(tensor.from(), tensor.shape()));
    out.writeNumberField("to", layout(tensor.to(), tensor.shape()));
    out.writeNumberField("reduced", traffic.reduceBytes());
    write(out, "links", traffic.links());
    write(out, "reads", traffic.reads());
    out.writeEndObject();
  }

  private static void write(JsonGenerator out, String name, List<Link> links)
      throws IOException {
    out.writeArrayFieldStart(name);
    for (Link link : links) {
      out.writeNumber(link.source());
      out.writeNumber(link.target());
      out.writeNumber(link.bytes());
    }
    out.writeEndArray();
  }

  /** Returns the index of a layout and shape among the page's layouts. */
  private int layout(Layout layout, long[] shape) {
    String key = layout.qualified() + Arrays.toString(shape);
    Integer known = layoutPlaces.get(key);
    if (known != null) {
      return known;
    }
    if (!layoutPlaces.isEmpty()) {
      layouts.append(",\n");
    }
    layouts.append(JsonLine.of(out -> writeLayout(out, layout, shape)));
    layoutPlaces.put(key, layoutPlaces.size());
    return layoutPlaces.size() - 1;
  }

  /**
   * Writes the mesh, its placements and the shards. For each dimension, it lists the distinct
   * interval lists, and each rank's index among them, in mesh order.
   */
  private static void writeLayout(JsonGenerator out, Layout layout, long[] shape)
      throws IOException {
    DeviceMesh mesh = layout.mesh();
    List<Map<List<Region.Interval>, Integer>> parts = new ArrayList<>();
    for (int d = 0; d < shape.length; d++) {
      parts.add(new LinkedHashMap<>());
    }
    out.writeStringField("text", layout.toString());
    out.writeArrayFieldStart("mesh");
    for (int m = 0; m < mesh.ndim(); m++) {
      out.writeStartObject();
      out.writeStringField("name", mesh.name(m));
      out.writeNumberField("size", mesh.size(m));
      out.writeStringField("placement", layout.placements().get(m).toString());
      out.writeBooleanField("partial", layout.placements().get(m) instanceof Placement.Partial);
      out.writeEndObject();
    }
    out.writeEndArray();
    out.writeArrayFieldStart("ranks");
    for (int rank : mesh.ranks()) {
      out.writeNumber(rank);
    }
    out.writeEndArray();
    out.writeArrayFieldStart("holds");
    for (int rank : mesh.ranks()) {
      Region region = layout.localRegion(shape, rank);
      out.writeStartArray();
      for (int d = 0; d < shape.length; d++) {
        Map<List<Region.Interval>, Integer> known = parts.get(d);
        int next = known.size();
        Integer place = known.putIfAbsent(region.intervals(d), next);
        out.writeNumber(place == null ? next : place);
      }
      out.writeEndArray();
    }
    out.writeEndArray();
    out.writeArrayFieldStart("parts");
    for (Map<List<Region.Interval>, Integer> known : parts) {
      out.writeStartArray();
      for (List<Region.Interval> intervals : known.keySet()) {
        writeIntervals(out, intervals);
      }
      out.writeEndArray();
    }
    out.writeEndArray();
  }

  private static void writeIntervals(JsonGenerator out, List<Region.Interval> intervals)
      throws IOException {
    out.writeStartArray();
    for (Region.Interval interval :
        intervals.subList(0, Math.min(intervals.size(), MOST_INTERVALS))) {
      out.writeNumber(interval.start());
      out.writeNumber(interval.end());
    }
    out.writeEndArray();
  }
}
