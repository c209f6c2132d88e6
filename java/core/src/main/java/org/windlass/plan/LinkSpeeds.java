// SPDX-License-Identifier: Apache-2.0
package org.windlass.plan;

import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.Optional;
import java.util.TreeMap;
import org.windlass.error.InvalidArgumentException;
import org.windlass.internal.json.JsonFields;
import org.windlass.internal.json.JsonText;

/**
 * The speeds at which bytes move within hosts and between them, read from a table in JSON:
 *
 * <pre>{@code
 * {"within": {"GBps": 12}, "between": {"GBps": 3.1, "us": 25},
 *  "pairs": [{"src": 0, "dst": 1, "GBps": 1.2, "us": 80}]}
 * }</pre>
 *
 * <ul>
 *   <li>The value {@code within} is the speed at which data moves within a host, for all ranks of
 *       the host together.
 *   <li>The value {@code between} is the speed of a host's port. At this speed, the host sends to
 *       all other hosts together. At the same time, it receives from all of them at this speed.
 *   <li>The list {@code pairs} has the links that are reserved for two hosts, from {@code src} to
 *       {@code dst}. Their traffic does not use the ports.
 *   <li>The unit {@code GBps} is 10^9 bytes per second.
 *   <li>The value {@code us} is the time in microseconds until the first byte arrives. It defaults
 *       to 0, and in {@code pairs} to the {@code us} of {@code between}.
 * </ul>
 *
 * <p>A table may have more hosts than a plan.
 */
public final class LinkSpeeds {
  private static final double LEAST_GIGABYTES = 1e-9;
  private static final String UNIT = ", in 10^9 bytes a second";
  private static final String HINT =
      "; a table is such as {\"within\": {\"GBps\": 12}, \"between\": {\"GBps\": 3.1, \"us\": 25}}";

  private record Speed(double gigabytes, double latency) {
    Prediction predict(double bytes, String what) {
      return new Prediction(bytes > 0 ? latency + bytes / (gigabytes * 1e9) : 0, what);
    }
  }

  private record Pair(int source, int target) {}

  private final Speed within;
  private final Speed port;
  private final Map<Pair, Speed> links;

  private LinkSpeeds(Speed within, Speed port, Map<Pair, Speed> links) {
    this.within = within;
    this.port = port;
    this.links = links;
  }

  /**
   * A lower bound for the time of a transfer at these speeds. It assumes that all hosts and links
   * work at the same time. The slowest one determines the bound.
   *
   * @param seconds time of the slowest host or link
   * @param bound description of the slowest host or link, such as {@code what host 0 sends}
   */
  public record Prediction(double seconds, String bound) {
    public Prediction {
      Objects.requireNonNull(bound, "bound");
    }
  }

  /**
   * Reads a table from a file.
   *
   * @param file a file with the JSON that {@link #parse} accepts
   * @throws InvalidArgumentException if the text is not a valid table, see {@link #parse}
   * @throws IOException if the file can't be read
   */
  public static LinkSpeeds read(Path file) throws IOException {
    Objects.requireNonNull(file, "file");
    return parse(file.toString(), JsonText.bytesOf(file));
  }

  /**
   * Parses a table.
   *
   * @param json the text of the table
   * @throws InvalidArgumentException if the text is not a valid table; the message names the
   *     position and the problem
   */
  public static LinkSpeeds parse(String json) {
    Objects.requireNonNull(json, "json");
    return parse("links", json.getBytes(StandardCharsets.UTF_8));
  }

  private static LinkSpeeds parse(String where, byte[] json) {
    return JsonText.parse(where, json, LinkSpeeds::read);
  }

  private static LinkSpeeds read(JsonText json) throws IOException {
    Map<Pair, Entry> pairs = new HashMap<>();
    JsonFields fields = new JsonFields(json, "");
    var within = fields.add("within", at -> within(json, at));
    var between = fields.add("between", at -> entry(json, at, new JsonFields(json, at)));
    fields.add("pairs", at -> json.list(at, pair -> addPair(json, pair, pairs)));
    fields.read("the whole");
    Speed inside = new Speed(within.get(HINT), 0);
    Speed port = between.get(HINT).speed(0);
    Map<Pair, Speed> links = new HashMap<>();
    pairs.forEach((pair, entry) -> links.put(pair, entry.speed(port.latency)));
    return new LinkSpeeds(inside, port, links);
  }

  /** A speed in the table. If it has no {@code us}, its latency comes from another entry. */
  private record Entry(double gigabytes, Optional<Double> microseconds) {
    Speed speed(double otherLatency) {
      return new Speed(gigabytes, microseconds.map(us -> us / 1e6).orElse(otherLatency));
    }
  }

  private static double within(JsonText json, String at) throws IOException {
    JsonFields fields = new JsonFields(json, at);
    var gigabytes = gigabytes(json, fields);
    fields.read(at);
    return gigabytes.get(UNIT);
  }

  private static Entry entry(JsonText json, String at, JsonFields fields) throws IOException {
    var gigabytes = gigabytes(json, fields);
    var microseconds = fields.add("us", json::number);
    fields.read(at);
    return new Entry(gigabytes.get(UNIT), microseconds.find());
  }

  private static Pair addPair(JsonText json, String at, Map<Pair, Entry> pairs)
      throws IOException {
    JsonFields fields = new JsonFields(json, at);
    var source = fields.add("src", json::integer);
    var target = fields.add("dst", json::integer);
    Entry entry = entry(json, at, fields);
    Pair pair =
        new Pair(source.get(": the number of a host"), target.get(": the number of a host"));
    if (pair.source == pair.target) {
      throw json.bad(
          at + " goes from host " + pair.source + " to itself; within says how fast that is");
    }
    if (pairs.put(pair, entry) != null) {
      throw json.bad(at + " is the second from host " + pair.source + " to host " + pair.target);
    }
    return pair;
  }

  private static JsonFields.Field<Double> gigabytes(JsonText json, JsonFields fields) {
    return fields.add(
        "GBps",
        what -> {
          double gigabytes = json.number(what);
          if (gigabytes < LEAST_GIGABYTES) {
            throw json.bad(what + " is " + gigabytes + "; it must be at least 1e-9, which is one"
                + " byte a second");
          }
          return gigabytes;
        });
  }

  /** Returns a lower bound for the time of {@code traffic} at these speeds. */
  public Prediction predict(HostTraffic traffic) {
    Objects.requireNonNull(traffic, "traffic");
    Map<Integer, Double> sent = new TreeMap<>();
    Map<Integer, Double> got = new TreeMap<>();
    List<Prediction> all = new ArrayList<>();
    for (HostTraffic.Within host : traffic.within()) {
      all.add(within.predict(host.bytes(), "what ranks of host " + host.host() + " get"));
    }
    for (Traffic.Link link : traffic.between()) {
      int source = link.source();
      int target = link.target();
      Speed own = links.get(new Pair(source, target));
      if (own != null) {
        all.add(own.predict(link.bytes(), "the link of hosts " + source + " -> " + target));
      } else {
        sent.merge(source, (double) link.bytes(), Double::sum);
        got.merge(target, (double) link.bytes(), Double::sum);
      }
    }
    sent.forEach((host, bytes) -> all.add(port.predict(bytes, "what host " + host + " sends")));
    got.forEach(
        (host, bytes) -> all.add(port.predict(bytes, "what host " + host + " gets of others")));
    return all.stream()
        .filter(each -> each.seconds > 0)
        .max(Comparator.comparingDouble(Prediction::seconds)) // the first of equally slow ones
        .orElse(new Prediction(0, "nothing"));
  }

  @Override
  public String toString() {
    return within.gigabytes + " GB/s within hosts, " + port.gigabytes + " GB/s between, "
        + links.size() + " links of their own";
  }
}
