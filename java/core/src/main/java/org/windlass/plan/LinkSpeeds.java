// SPDX-License-Identifier: Apache-2.0
package org.windlass.plan;

import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.util.HashMap;
import java.util.Map;
import java.util.Objects;
import java.util.Set;
import java.util.TreeMap;
import org.jspecify.annotations.Nullable;
import org.windlass.error.InvalidArgumentException;
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
 *   <li>The value {@code within} is the speed at which all ranks of a host together receive data.
 *   <li>The value {@code between} is the speed of a host's port. The host sends to all other hosts
 *       at that speed. At the same time it receives from them at that speed.
 *   <li>The list {@code pairs} has pairs of hosts that have their own link from {@code src} to
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

  private record Speed(double gigabytes, double latency) {
    double seconds(double bytes) {
      return latency + bytes / (gigabytes * 1e9);
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
   * work at the same time. The slowest of them gives the bound.
   *
   * @param seconds time of the slowest host or link
   * @param bound description of the slowest one, such as {@code what host 0 sends}
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
    return parse(file.toString(), JsonText.bytesOf(file, InvalidArgumentException::new));
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
    Reading reading = new Reading();
    JsonText.object(where, json, InvalidArgumentException::new, reading::read);
    Entry within = reading.within;
    Entry between = reading.between;
    if (within == null || between == null) {
      throw new InvalidArgumentException(
          where + ": " + (within == null ? "within" : "between")
              + " is missing; a table is such as {\"within\": {\"GBps\": 12}, \"between\":"
              + " {\"GBps\": 3.1, \"us\": 25}}");
    }
    double latency = between.microseconds == null ? 0 : between.microseconds;
    Map<Pair, Speed> links = new HashMap<>();
    reading.pairs.forEach((pair, entry) -> links.put(pair, entry.speed(latency)));
    return new LinkSpeeds(within.speed(0), between.speed(0), links);
  }

  /** The fields of a JSON object with a speed; 0 or null if absent. */
  private static final class Entry {
    double gigabytes;
    @Nullable Double microseconds;

    /** Returns the speed. If {@code us} is absent, its latency is {@code other} in microseconds. */
    Speed speed(double other) {
      return new Speed(gigabytes, (microseconds == null ? other : microseconds) / 1e6);
    }
  }

  private static final class Reading {
    @Nullable Entry within;
    @Nullable Entry between;
    final Map<Pair, Entry> pairs = new HashMap<>();

    void read(JsonText json, String key) throws IOException {
      switch (key) {
        case "within" -> within = speed(json, key, Set.of("GBps"), new HashMap<>());
        case "between" -> between = speed(json, key, Set.of("GBps", "us"), new HashMap<>());
        case "pairs" -> json.elements(key, index -> pair(json, key + "[" + index + "]"));
        default ->
            throw json.bad(
                "unknown key " + JsonText.quoted(key) + "; a table has within, between and pairs");
      }
    }

    private void pair(JsonText json, String at) throws IOException {
      Map<String, Integer> ends = new HashMap<>();
      Entry entry = speed(json, at, Set.of("src", "dst", "GBps", "us"), ends);
      Pair pair = new Pair(end(json, at, ends, "src"), end(json, at, ends, "dst"));
      if (pair.source == pair.target) {
        throw json.bad(
            at + " goes from host " + pair.source + " to itself; within says how fast that is");
      }
      if (pairs.put(pair, entry) != null) {
        throw json.bad(
            at + " is the second from host " + pair.source + " to host " + pair.target);
      }
    }

    private static int end(JsonText json, String at, Map<String, Integer> ends, String end) {
      Integer host = ends.get(end);
      if (host == null) {
        throw json.bad(at + "." + end + " is missing: the number of a host");
      }
      return host;
    }

    private static Entry speed(
        JsonText json, String at, Set<String> known, Map<String, Integer> ends)
        throws IOException {
      Entry entry = new Entry();
      json.members(
          at,
          key -> {
            String what = at + "." + key;
            if (!known.contains(key)) {
              throw json.bad(what + ": unknown key");
            }
            switch (key) {
              case "GBps" -> {
                entry.gigabytes = json.number(what);
                if (entry.gigabytes < LEAST_GIGABYTES) {
                  throw json.bad(
                      what + " is " + entry.gigabytes + "; it is a byte a second, 1e-9, or more");
                }
              }
              case "us" -> entry.microseconds = json.number(what);
              default -> {
                long host = json.natural(what);
                if (host > Integer.MAX_VALUE) {
                  throw json.bad(what + " is " + host + ", no number of a host");
                }
                ends.put(key, (int) host);
              }
            }
          });
      if (entry.gigabytes == 0) {
        throw json.bad(at + ".GBps is missing, in 10^9 bytes a second");
      }
      return entry;
    }
  }

  /** Returns a lower bound for the time of {@code traffic} at these speeds. */
  public Prediction predict(HostTraffic traffic) {
    Objects.requireNonNull(traffic, "traffic");
    Map<Integer, Double> sent = new TreeMap<>();
    Map<Integer, Double> got = new TreeMap<>();
    Slowest slowest = new Slowest();
    for (HostTraffic.Within host : traffic.within()) {
      slowest.add(within, host.bytes(), "what ranks of host " + host.host() + " get");
    }
    for (HostTraffic.Link link : traffic.between()) {
      Speed own = links.get(new Pair(link.source(), link.target()));
      if (own != null) {
        slowest.add(
            own, link.bytes(), "the link of hosts " + link.source() + " -> " + link.target());
      } else {
        sent.merge(link.source(), (double) link.bytes(), Double::sum);
        got.merge(link.target(), (double) link.bytes(), Double::sum);
      }
    }
    sent.forEach((host, bytes) -> slowest.add(port, bytes, "what host " + host + " sends"));
    got.forEach(
        (host, bytes) -> slowest.add(port, bytes, "what host " + host + " gets of others"));
    return new Prediction(slowest.seconds, slowest.bound);
  }

  /** Keeps the slowest host or link that was added; of equally slow ones, the first. */
  private static final class Slowest {
    double seconds;
    String bound = "nothing";

    void add(Speed speed, double bytes, String what) {
      if (bytes > 0 && speed.seconds(bytes) > seconds) {
        seconds = speed.seconds(bytes);
        bound = what;
      }
    }
  }

  @Override
  public String toString() {
    return within.gigabytes + " GB/s within hosts, " + port.gigabytes + " GB/s between, "
        + links.size() + " links of their own";
  }
}
