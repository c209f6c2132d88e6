// SPDX-License-Identifier: Apache-2.0
package org.windlass.plan;

import java.util.ArrayList;
import java.util.Collections;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.Optional;
import java.util.function.BiConsumer;
import java.util.function.Consumer;
import org.windlass.ReduceOp;
import org.windlass.internal.Copies;
import org.windlass.layout.Region;

/**
 * Routes of one or more tensors that are sent together through one buffer. They have the same
 * source, targets, transport and reduction. If they only contribute to a reduction, they also have
 * the same region. Every rank that takes part in a bucket computes the same bucket.
 */
public final class Bucket {
  /**
   * One route of a bucket.
   *
   * @param tensor index of the route's plan in the list that was passed to {@link #pack(List)}
   * @param route the route
   */
  public record Entry(int tensor, Route route) {
    public Entry {
      Objects.requireNonNull(route, "route");
    }
  }

  private record Key(
      long bucketBytes,
      Transport transport,
      List<Integer> targets,
      List<Integer> sources,
      Optional<ReduceOp> op,
      Optional<Region> region) {}

  private final List<Entry> entries = new ArrayList<>();
  private long bytes;

  private Bucket() {}

  /**
   * Packs all routes of a transfer into buckets. A bucket holds at most {@link
   * PlanOptions#bucketBytes}, which must be the same in all plans. A route of at least that size
   * gets a bucket of its own.
   *
   * @param plans one for each tensor, in the transfer's order
   * @return the buckets, in the same order on every rank
   */
  public static List<Bucket> pack(List<Plan> plans) {
    return pack(plans, (plan, sink) -> plan.forEachRoute(sink));
  }

  /**
   * Packs the routes of a transfer in which {@code rank} takes part. Returns those buckets of
   * {@link #pack(List)} that involve the rank, in the same order.
   *
   * @param plans one for each tensor, in the transfer's order
   * @param rank the rank
   */
  public static List<Bucket> pack(List<Plan> plans, int rank) {
    Plan.checkRank(rank);
    return pack(plans, (plan, sink) -> plan.routesFor(rank).forEach(sink));
  }

  /** Packs as {@link #pack(List, int)} does, but only plans in {@link TransferMode#STAGED}. */
  static List<Bucket> packStaged(List<Plan> plans, int rank) {
    return pack(
        plans,
        (plan, sink) -> {
          if (plan.options().mode() == TransferMode.STAGED) {
            plan.routesFor(rank).forEach(sink);
          }
        });
  }

  /**
   * Returns the rank that sends the bucket. With {@link Transport#NONE}, no rank sends; then
   * returns the rank whose tensor another rank reads for a reduction.
   */
  public int source() {
    return entries.get(0).route().source();
  }

  /** Returns how the bucket's bytes get from the source to the targets. */
  public Transport transport() {
    return entries.get(0).route().transport();
  }

  /** Returns the ranks that receive the bucket; empty for {@link Transport#NONE}. */
  public List<Integer> targets() {
    return entries.get(0).route().targets();
  }

  /** Returns the routes in the bucket, in the order of the transfer's tensors. */
  public List<Entry> entries() {
    return Collections.unmodifiableList(entries);
  }

  /** Returns the number of bytes that each target receives, in the wire dtype. */
  public long bytes() {
    return bytes;
  }

  private static List<Bucket> pack(List<Plan> plans, BiConsumer<Plan, Consumer<Route>> selection) {
    List<Plan> all = Copies.list(plans, "plans");
    Packing packing = new Packing();
    List<Bucket> buckets = new ArrayList<>();
    for (int i = 0; i < all.size(); i++) {
      int tensor = i;
      long most = all.get(tensor).options().bucketBytes();
      selection.accept(
          all.get(tensor),
          route -> {
            int place = packing.place(route, most);
            if (place == buckets.size()) {
              buckets.add(new Bucket());
            }
            buckets.get(place).add(new Entry(tensor, route));
          });
    }
    return buckets;
  }

  private void add(Entry entry) {
    entries.add(entry);
    bytes += entry.route().bytes();
  }

  static final class Packing {
    private final Map<Integer, Map<Key, Open>> open = new HashMap<>();

    private int buckets;

    private static final class Open {
      int place;
      long bytes;
    }

    /**
     * Returns the index of the route's bucket. A route that does not fit into a bucket begins a new
     * one, with the next index.
     *
     * @param most largest number of bytes of a bucket
     */
    int place(Route route, long most) {
      // An empty route counts as one byte: with a bucket size of 1, it gets its own bucket.
      long bytes = Math.max(1, route.bytes());
      if (bytes >= most) {
        return buckets++;
      }
      Map<Key, Open> ofSource = open.computeIfAbsent(route.source(), source -> new HashMap<>());
      Open bucket = ofSource.computeIfAbsent(key(route, most), key -> begin());
      if (bucket.bytes > most - bytes) {
        bucket.place = buckets++;
        bucket.bytes = 0;
      }
      bucket.bytes += route.bytes();
      return bucket.place;
    }

    private Open begin() {
      Open bucket = new Open();
      bucket.place = buckets++;
      return bucket;
    }

    void close(int source) {
      open.remove(source);
    }

    int buckets() {
      return buckets;
    }
  }

  private static Key key(Route route, long bucketBytes) {
    Optional<Region> region =
        route.transport() == Transport.NONE ? Optional.of(route.region()) : Optional.empty();
    return new Key(
        bucketBytes, route.transport(), route.targets(), route.sources(), route.op(), region);
  }
}
