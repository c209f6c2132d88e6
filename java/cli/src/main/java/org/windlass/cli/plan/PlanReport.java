// SPDX-License-Identifier: Apache-2.0
package org.windlass.cli.plan;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.BitSet;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Optional;
import java.util.stream.Collectors;
import java.util.stream.IntStream;
import org.jspecify.annotations.Nullable;
import org.windlass.internal.json.JsonObject;
import org.windlass.layout.Region;
import org.windlass.plan.HostTraffic;
import org.windlass.plan.LinkSpeeds;
import org.windlass.plan.Plan;
import org.windlass.plan.Route;
import org.windlass.plan.Totals;
import org.windlass.plan.Traffic.Link;
import org.windlass.plan.Transport;

/** Formats plans as lines: JSON objects, or text for people. */
public final class PlanReport {
  private final PlanRequest request;
  private final boolean summary;
  private final boolean json;

  public PlanReport(PlanRequest request, boolean summary, boolean json) {
    this.request = request;
    this.summary = summary;
    this.json = json;
  }

  private record Planned(
      @Nullable String name,
      @Nullable PlannedTensor tensor,
      int tensors,
      BitSet ranks,
      List<Plan> plans,
      Totals totals,
      long stagingBytes,
      double millis) {
    Plan plan() {
      return plans.get(0);
    }
  }

  public List<String> one(PlannedTensor tensor) {
    long begin = System.nanoTime();
    return List.of(ofTensor(null, tensor, tensor.plans(request.options(), 0).get(0), begin));
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
      List<Plan> same = tensor.plans(request.options(), plans.size());
      plans.addAll(same);
      if (!summary) {
        lines.add(ofTensor(tensor.name(), tensor, same.get(0), tensorBegin));
      }
    }
    lines.add(written(null, null, plans.size(), ranks, plans, begin));
    return lines;
  }

  private String ofTensor(@Nullable String name, PlannedTensor tensor, Plan plan, long begin) {
    BitSet ranks = new BitSet();
    tensor.addRanks(ranks);
    return written(name, tensor, tensor.count(), ranks, List.of(plan), begin);
  }

  private String written(
      @Nullable String name,
      @Nullable PlannedTensor tensor,
      int tensors,
      BitSet ranks,
      List<Plan> plans,
      long begin) {
    Totals totals = request.totals(plans);
    long staging = request.stagingBytes(plans);
    double millis = (System.nanoTime() - begin) / 1e6;
    Planned planned =
        new Planned(name, tensor, tensors, ranks, plans, totals, staging, millis);
    return json ? JsonObject.line(json(planned)) : text(planned);
  }

  private List<Route> routes(Plan plan) {
    return summary ? List.of() : request.rank().map(plan::routesFor).orElseGet(plan::routes);
  }

  private Map<String, Object> json(Planned planned) {
    PlannedTensor tensor = planned.tensor();
    Totals totals = planned.totals();
    Map<String, Object> json = new LinkedHashMap<>();
    if (planned.name() != null) {
      json.put("name", planned.name());
      json.put("count", planned.tensors());
    }
    if (tensor == null) {
      json.put("tensors", planned.tensors());
    } else {
      json.put("from", tensor.from());
      json.put("to", tensor.to().qualified());
      json.put("shape", Arrays.stream(tensor.shape()));
      json.put("dtype", tensor.dtype());
      json.put("wire", tensor.wire());
    }
    json.put("ranks", planned.ranks().cardinality());
    json.put("rank", request.rank());
    if (!summary && tensor != null) {
      json.put("routes", routes(planned.plan()).stream().map(PlanReport::json));
    }
    if (!summary) {
      json.put(
          "links",
          request.traffic(planned.plans()).links().stream()
              .map(link -> link(link.source(), link.target(), link.bytes())));
    }
    json.put("buckets", totals.buckets());
    json.put("sent_bytes", totals.sentBytes());
    json.put("local_bytes", totals.localBytes());
    json.put("reduce_bytes", totals.reduceBytes());
    json.put("staging_bytes", planned.stagingBytes());
    json.putAll(hosts(planned));
    json.put("plan_ms", JsonObject.decimal(planned.millis(), 3));
    return json;
  }

  private Map<String, Object> hosts(Planned planned) {
    HostTraffic traffic = planned.totals().hosts();
    Map<String, Object> json = new LinkedHashMap<>();
    if (request.hosts().isPresent()) {
      json.put("hosts", request.count(planned.ranks()));
      if (!summary) {
        json.put(
            "between_hosts",
            traffic.between().stream()
                .map(link -> link(link.source(), link.target(), link.bytes())));
      }
      json.put("cross_bytes", traffic.crossBytes());
    }
    Optional<LinkSpeeds.Prediction> predicted = request.predict(traffic);
    json.put(
        "predicted_ms", predicted.map(time -> JsonObject.decimal(time.seconds() * 1e3, 3)));
    json.put("bound_by", predicted.map(LinkSpeeds.Prediction::bound));
    return json;
  }

  private static Map<String, Object> link(int source, int target, long bytes) {
    return JsonObject.of("src", source, "dst", target, "bytes", bytes);
  }

  private static Map<String, Object> json(Route route) {
    List<?> region =
        IntStream.range(0, route.region().ndim())
            .mapToObj(d -> json(route.region().intervals(d)))
            .toList();
    return JsonObject.of(
        "src", route.source(),
        "transport", route.transport(),
        "bytes", route.bytes(),
        "dsts",
            route.targets().stream().map(rank -> JsonObject.of("rank", rank, "region", region)));
  }

  /** Returns the interval of a dimension, with an exclusive end, or a list if there are several. */
  private static List<?> json(List<Region.Interval> intervals) {
    List<List<Long>> all =
        intervals.stream().map(each -> List.of(each.start(), each.end())).toList();
    return all.size() == 1 ? all.get(0) : all;
  }

  private String text(Planned planned) {
    StringBuilder text = new StringBuilder();
    PlannedTensor tensor = planned.tensor();
    if (tensor == null) {
      text.append(planned.tensors()).append(planned.tensors() == 1 ? " tensor\n" : " tensors\n");
    } else {
      text.append(
          (planned.name() == null ? "" : planned.name() + ": ")
              + (tensor.count() == 1 ? "" : tensor.count() + " times ") + tensor.dtype()
              + Arrays.toString(tensor.shape()) + " from " + tensor.from() + " to "
              + tensor.to().qualified() + ", wire " + tensor.wire() + "\n");
    }
    for (Route route : tensor == null ? List.<Route>of() : routes(planned.plan())) {
      text.append(line(route));
    }
    HostTraffic traffic = planned.totals().hosts();
    if (request.hosts().isPresent()) {
      text.append(hosts(planned, traffic));
    }
    request.predict(traffic).ifPresent(predicted -> text.append(line(predicted)));
    text.append(
        String.format(
            Locale.ROOT,
            "  %d ranks%s: %,d bytes sent, %,d local, %,d read to reduce, %,d staged; %s; planned in"
                + " %.1f ms",
            planned.ranks().cardinality(),
            request.rank().map(one -> ", rank " + one + " alone").orElse(""),
            planned.totals().sentBytes(),
            planned.totals().localBytes(),
            planned.totals().reduceBytes(),
            planned.stagingBytes(),
            buckets(planned.totals().buckets()),
            planned.millis()));
    return text.toString();
  }

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

  private String hosts(Planned planned, HostTraffic traffic) {
    int hosts = request.count(planned.ranks());
    StringBuilder text = new StringBuilder();
    for (Link link : summary ? List.<Link>of() : traffic.between()) {
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

  private String buckets(long count) {
    return switch (request.options().mode()) {
      case DIRECT -> "no bucket, since mode direct packs nothing (staged: " + count + ")";
      case STAGED -> count + (count == 1 ? " bucket" : " buckets");
      case GATHER_BROADCAST -> "no bucket, since one rank gathers the whole (staged: " + count + ")";
    };
  }
}
