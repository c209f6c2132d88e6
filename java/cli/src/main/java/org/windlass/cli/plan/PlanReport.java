// SPDX-License-Identifier: Apache-2.0
package org.windlass.cli.plan;

import com.fasterxml.jackson.core.JsonGenerator;
import java.io.IOException;
import java.math.BigDecimal;
import java.math.RoundingMode;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.BitSet;
import java.util.List;
import java.util.Locale;
import java.util.Optional;
import java.util.OptionalInt;
import java.util.stream.Collectors;
import org.windlass.cli.out.JsonLine;
import org.windlass.layout.Region;
import org.windlass.plan.HostTraffic;
import org.windlass.plan.LinkSpeeds;
import org.windlass.plan.Plan;
import org.windlass.plan.PlanOptions;
import org.windlass.plan.Route;
import org.windlass.plan.Totals;
import org.windlass.plan.Traffic;
import org.windlass.plan.Traffic.Link;
import org.windlass.plan.Transport;

/** Formats plans as lines: JSON objects, or text for people. */
public final class PlanReport {
  private final PlanOptions options;
  private final Topology topology;
  private final OptionalInt rank;
  private final boolean summary;
  private final boolean json;

  /**
   * Creates a report.
   *
   * @param topology hosts and speeds that the user gave
   * @param rank the only rank that is planned; empty for all
   * @param summary whether to omit routes and links
   * @param json whether lines are JSON
   */
  public PlanReport(
      PlanOptions options, Topology topology, OptionalInt rank, boolean summary, boolean json) {
    this.options = options;
    this.topology = topology;
    this.rank = rank;
    this.summary = summary;
    this.json = json;
  }

  /** The planned work: one tensor, or the sum of several. */
  private record Planned(
      String name,
      PlannedTensor tensor,
      int tensors,
      BitSet ranks,
      List<Plan> plans,
      Totals totals,
      long stagingBytes,
      double millis) {
    /** Returns the plan of a single tensor. */
    Plan plan() {
      return plans.get(0);
    }
  }

  /** Returns the lines about a single tensor. */
  public List<String> one(PlannedTensor tensor) {
    long begin = System.nanoTime();
    return List.of(ofTensor(null, tensor, tensor.plans(options, 0).get(0), begin));
  }

  /** Returns the lines about several tensors, and about their sum. */
  public List<String> list(List<PlannedTensor> tensors) {
    long begin = System.nanoTime();
    List<String> lines = new ArrayList<>();
    List<Plan> plans = new ArrayList<>();
    BitSet ranks = new BitSet();
    for (PlannedTensor tensor : tensors) {
      tensor.addRanks(ranks);
      long tensorBegin = System.nanoTime();
      List<Plan> same = tensor.plans(options, plans.size());
      plans.addAll(same);
      if (!summary) {
        lines.add(ofTensor(tensor.name(), tensor, same.get(0), tensorBegin));
      }
    }
    lines.add(written(null, null, plans.size(), ranks, plans, begin));
    return lines;
  }

  private String ofTensor(String name, PlannedTensor tensor, Plan plan, long begin) {
    BitSet ranks = new BitSet();
    tensor.addRanks(ranks);
    return written(name, tensor, tensor.count(), ranks, List.of(plan), begin);
  }

  private String written(
      String name, PlannedTensor tensor, int tensors, BitSet ranks, List<Plan> plans, long begin) {
    Totals totals =
        rank.isPresent() ? Totals.of(plans, rank.getAsInt()) : Totals.of(plans);
    long staging = stagingBytes(plans);
    double millis = (System.nanoTime() - begin) / 1e6;
    Planned planned =
        new Planned(name, tensor, tensors, ranks, plans, totals, staging, millis);
    return json ? json(planned) : text(planned);
  }

  private List<Route> routes(Plan plan) {
    if (summary) {
      return List.of();
    }
    return rank.isPresent() ? plan.routesFor(rank.getAsInt()) : plan.routes();
  }

  private List<Link> links(List<Plan> plans) {
    return rank.isPresent()
        ? Traffic.ofPlans(plans, rank.getAsInt()).links()
        : Traffic.ofPlans(plans).links();
  }

  private long stagingBytes(List<Plan> plans) {
    return rank.isPresent()
        ? Plan.stagingBytes(plans, rank.getAsInt())
        : Plan.stagingBytes(plans);
  }

  private String json(Planned planned) {
    return JsonLine.of(
        generator -> {
          if (planned.name() != null) {
            generator.writeStringField("name", planned.name());
            generator.writeNumberField("count", planned.tensors());
          }
          if (planned.tensor() == null) {
            generator.writeNumberField("tensors", planned.tensors());
          } else {
            generator.writeStringField("from", planned.tensor().from().toString());
            generator.writeStringField("to", planned.tensor().to().qualified());
            generator.writeFieldName("shape");
            generator.writeArray(planned.tensor().shape(), 0, planned.tensor().shape().length);
            generator.writeStringField("dtype", planned.tensor().dtype().toString());
            generator.writeStringField("wire", planned.tensor().wire().toString());
          }
          generator.writeNumberField("ranks", planned.ranks().cardinality());
          if (rank.isPresent()) {
            generator.writeNumberField("rank", rank.getAsInt());
          }
          if (!summary) {
            if (planned.tensor() != null) {
              writeRoutes(generator, routes(planned.plan()));
            }
            writeLinks(generator, links(planned.plans()));
          }
          generator.writeNumberField("buckets", planned.totals().buckets());
          generator.writeNumberField("sent_bytes", planned.totals().sentBytes());
          generator.writeNumberField("local_bytes", planned.totals().localBytes());
          generator.writeNumberField("reduce_bytes", planned.totals().reduceBytes());
          generator.writeNumberField("staging_bytes", planned.stagingBytes());
          writeHosts(generator, planned);
          generator.writeNumberField("plan_ms", thousandths(planned.millis()));
        });
  }

  private static BigDecimal thousandths(double value) {
    return BigDecimal.valueOf(value).setScale(3, RoundingMode.HALF_UP);
  }

  /** Writes the traffic between hosts. */
  private void writeHosts(JsonGenerator generator, Planned planned) throws IOException {
    HostTraffic traffic = planned.totals().hosts();
    if (topology.hosts().isPresent()) {
      generator.writeNumberField("hosts", topology.count(planned.ranks()));
      if (!summary) {
        generator.writeArrayFieldStart("between_hosts");
        for (HostTraffic.Link link : traffic.between()) {
          writeLink(generator, link.source(), link.target(), link.bytes());
        }
        generator.writeEndArray();
      }
      generator.writeNumberField("cross_bytes", traffic.crossBytes());
    }
    Optional<LinkSpeeds.Prediction> predicted = topology.predict(traffic);
    if (predicted.isPresent()) {
      generator.writeNumberField("predicted_ms", thousandths(predicted.get().seconds() * 1e3));
      generator.writeStringField("bound_by", predicted.get().bound());
    }
  }

  private static void writeLink(JsonGenerator generator, int source, int target, long bytes)
      throws IOException {
    generator.writeStartObject();
    generator.writeNumberField("src", source);
    generator.writeNumberField("dst", target);
    generator.writeNumberField("bytes", bytes);
    generator.writeEndObject();
  }

  private static void writeRoutes(JsonGenerator generator, List<Route> routes)
      throws IOException {
    generator.writeArrayFieldStart("routes");
    for (Route route : routes) {
      generator.writeStartObject();
      generator.writeNumberField("src", route.source());
      generator.writeStringField("transport", route.transport().toString());
      generator.writeNumberField("bytes", route.bytes());
      generator.writeArrayFieldStart("dsts");
      for (int target : route.targets()) {
        generator.writeStartObject();
        generator.writeNumberField("rank", target);
        generator.writeFieldName("region");
        writeRegion(generator, route.region());
        generator.writeEndObject();
      }
      generator.writeEndArray();
      generator.writeEndObject();
    }
    generator.writeEndArray();
  }

  /**
   * Writes one half-open interval for each dimension, or a list of them if the region has several.
   */
  private static void writeRegion(JsonGenerator generator, Region region) throws IOException {
    generator.writeStartArray();
    for (int d = 0; d < region.ndim(); d++) {
      List<Region.Interval> intervals = region.intervals(d);
      if (intervals.size() > 1) {
        generator.writeStartArray();
      }
      for (Region.Interval interval : intervals) {
        generator.writeArray(new long[] {interval.start(), interval.end()}, 0, 2);
      }
      if (intervals.size() > 1) {
        generator.writeEndArray();
      }
    }
    generator.writeEndArray();
  }

  private static void writeLinks(JsonGenerator generator, List<Link> links) throws IOException {
    generator.writeArrayFieldStart("links");
    for (Link link : links) {
      writeLink(generator, link.source(), link.target(), link.bytes());
    }
    generator.writeEndArray();
  }

  private String text(Planned planned) {
    StringBuilder text = new StringBuilder();
    PlannedTensor tensor = planned.tensor();
    if (tensor == null) {
      text.append(planned.tensors()).append(" tensors\n");
    } else {
      text.append(planned.name() == null ? "" : planned.name() + ": ")
          .append(tensor.count() == 1 ? "" : tensor.count() + " times ")
          .append(tensor.dtype())
          .append(Arrays.toString(tensor.shape()))
          .append(" from ")
          .append(tensor.from())
          .append(" to ")
          .append(tensor.to().qualified())
          .append(", wire ")
          .append(tensor.wire())
          .append('\n');
    }
    for (Route route : tensor == null ? List.<Route>of() : routes(planned.plan())) {
      text.append(line(route));
    }
    HostTraffic traffic = planned.totals().hosts();
    if (topology.hosts().isPresent()) {
      text.append(hosts(planned, traffic));
    }
    topology.predict(traffic).ifPresent(predicted -> text.append(line(predicted)));
    text.append(
        String.format(
            Locale.ROOT,
            "  %d ranks%s: %,d bytes sent, %,d local, %,d read to reduce, %,d staged; %s; planned in"
                + " %.1f ms",
            planned.ranks().cardinality(),
            rank.isPresent() ? ", rank " + rank.getAsInt() + " alone" : "",
            planned.totals().sentBytes(),
            planned.totals().localBytes(),
            planned.totals().reduceBytes(),
            planned.stagingBytes(),
            buckets(planned.totals().buckets()),
            planned.millis()));
    return text.toString();
  }

  /**
   * Returns the line of a route: sender, method, receivers, bytes for each, region, and the terms
   * of a sum.
   */
  private static String line(Route route) {
    String terms = route.op().map(op -> "  " + op + " of " + joined(route.sources())).orElse("");
    String fate =
        route.transport() == Transport.NONE
            ? "sends nothing: holds a term of "
            : "-> " + joined(route.targets()) + "  ";
    return String.format(
        Locale.ROOT,
        "  %5d %-9s %s%,d bytes%s  %s%s%n",
        route.source(),
        route.transport(),
        fate,
        route.bytes(),
        route.targets().size() > 1 ? " each" : "",
        route.region(),
        terms);
  }

  /** Returns the traffic between hosts: of each pair, unless summarised, and of all. */
  private String hosts(Planned planned, HostTraffic traffic) {
    int hosts = topology.count(planned.ranks());
    StringBuilder text = new StringBuilder();
    for (HostTraffic.Link link : summary ? List.<HostTraffic.Link>of() : traffic.between()) {
      text.append(
          String.format(
              Locale.ROOT,
              "  host %d -> host %d  %,d bytes%n",
              link.source(),
              link.target(),
              link.bytes()));
    }
    return text.append(
            String.format(
                Locale.ROOT,
                "  %d %s: %,d bytes have to cross between them%n",
                hosts,
                hosts == 1 ? "host" : "hosts",
                traffic.crossBytes()))
        .toString();
  }

  private static String line(LinkSpeeds.Prediction predicted) {
    return String.format(
        Locale.ROOT,
        "  predicted: %.3f ms, bound by %s%n",
        predicted.seconds() * 1e3,
        predicted.bound());
  }

  private static String joined(List<Integer> ranks) {
    return ranks.stream().map(String::valueOf).collect(Collectors.joining(","));
  }

  /** Describes the buckets that the mode uses. */
  private String buckets(long count) {
    return switch (options.mode()) {
      case DIRECT -> "no bucket, since mode direct packs nothing (staged: " + count + ")";
      case STAGED -> count + " buckets";
      case GATHER_BROADCAST -> "no bucket, since one rank gathers the whole (staged: " + count + ")";
    };
  }
}
