// SPDX-License-Identifier: Apache-2.0
package org.windlass.plan;

import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.util.HashMap;
import java.util.Map;
import java.util.Objects;
import java.util.Set;
import java.util.TreeMap;
import org.windlass.error.InvalidArgumentException;
import org.windlass.internal.json.JsonText;

/**
 * The speeds of what bytes take between hosts and within them, as a table in JSON:
 *
 * <pre>{@code
 * {"within": {"GBps": 12}, "between": {"GBps": 3.1, "us": 25},
 *  "pairs": [{"src": 0, "dst": 1, "GBps": 1.2, "us": 80}]}
 * }</pre>
 *
 * <p>{@code within} is the speed at which the ranks of a host get what they need, all together.
 * Each host has a port, by which it sends to all others at the speed of {@code between}, and gets
 * from all others at once; {@code us} is how long the first byte takes, 0 without. A pair of {@code
 * pairs} has a link of its own in that direction, and takes nothing of the ports; its {@code us} is
 * that of {@code between} unless it says another; a table may have more hosts than a plan. GBps are
 * 10^9 bytes in a second.
 */
public final class LinkSpeeds {
  private static final double LEAST_GIGABYTES = 1e-9;

  /** GB/s, and seconds that the first byte takes. */
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
   * A time that no transfer undercuts at these speeds, were all that it moves to move at once.
   *
   * @param seconds that the slowest takes
   * @param bound what that is, such as {@code what host 0 sends}
   */
  public record Prediction(double seconds, String bound) {
    /** Checks the components. */
    public Prediction {
      Objects.requireNonNull(bound, "bound");
    }
  }

  /**
   * Reads a file.
   *
   * @throws InvalidArgumentException as {@link #parse}
   * @throws IOException if it can't be read
   */
  public static LinkSpeeds read(Path file) throws IOException {
    Objects.requireNonNull(file, "file");
    try {
      return parse(
          file.toString(),
          JsonText.bytesOf(
              file,
              InvalidArgumentException::new,
              (path, fault) -> new UncheckedIOException(fault)));
    } catch (UncheckedIOException e) {
      throw e.getCause();
    }
  }

  /**
   * The table that a text is.
   *
   * @throws InvalidArgumentException if it is none: it names the place, and what is wrong there
   */
  public static LinkSpeeds parse(String json) {
    Objects.requireNonNull(json, "json");
    return parse("links", json.getBytes(StandardCharsets.UTF_8));
  }

  private static LinkSpeeds parse(String where, byte[] json) {
    Reading reading = new Reading();
    JsonText.object(where, json, InvalidArgumentException::new, reading::read);
    if (reading.within == null || reading.between == null) {
      throw new InvalidArgumentException(
          where + ": " + (reading.within == null ? "within" : "between")
              + " is missing; a table is such as {\"within\": {\"GBps\": 12}, \"between\":"
              + " {\"GBps\": 3.1, \"us\": 25}}");
    }
    Map<Pair, Speed> links = new HashMap<>();
    reading.pairs.forEach(
        (pair, entry) ->
            links.put(pair, entry.speed(reading.between.microseconds)));
    return new LinkSpeeds(reading.within.speed(0), reading.between.speed(0), links);
  }

  /** What an object says of a speed; null where it does not. */
  private static final class Entry {
    Double gigabytes;
    Double microseconds;

    /** Without {@code us} that of {@code other}, where that has one. */
    Speed speed(double other) {
      return new Speed(gigabytes, (microseconds == null ? other : microseconds) / 1e6);
    }
  }

  /** What stands in the table so far. */
  private static final class Reading {
    Entry within;
    Entry between;
    final Map<Pair, Entry> pairs = new HashMap<>();

    void read(JsonText json, String key) throws IOException {
      switch (key) {
        case "within" -> within = speed(json, key, Set.of("GBps"), new HashMap<>());
        case "between" -> {
          between = speed(json, key, Set.of("GBps", "us"), new HashMap<>());
          if (between.microseconds == null) {
            between.microseconds = 0.0;
          }
        }
        case "pairs" -> json.elements(key, index -> pair(json, key + "[" + index + "]"));
        default ->
            throw json.bad(
                "unknown key " + JsonText.quoted(key) + "; a table has within, between and pairs");
      }
    }

    private void pair(JsonText json, String at) throws IOException {
      Map<String, Integer> ends = new HashMap<>();
      Entry entry = speed(json, at, Set.of("src", "dst", "GBps", "us"), ends);
      for (String end : new String[] {"src", "dst"}) {
        if (!ends.containsKey(end)) {
          throw json.bad(at + "." + end + " is missing: the number of a host");
        }
      }
      Pair pair = new Pair(ends.get("src"), ends.get("dst"));
      if (pair.source == pair.target) {
        throw json.bad(
            at + " goes from host " + pair.source + " to itself; within says how fast that is");
      }
      if (pairs.put(pair, entry) != null) {
        throw json.bad(
            at + " is the second from host " + pair.source + " to host " + pair.target);
      }
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
      if (entry.gigabytes == null) {
        throw json.bad(at + ".GBps is missing, in 10^9 bytes a second");
      }
      return entry;
    }
  }

  /** How long what moves takes at least. */
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

  /** The one that takes longest of several, the first added of equal ones. */
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
