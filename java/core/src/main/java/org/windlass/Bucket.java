// SPDX-License-Identifier: Apache-2.0
package org.windlass;

import java.util.ArrayList;
import java.util.Collections;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.function.ObjIntConsumer;

/**
 * Routes of one or more tensors that share one buffer and one wire operation: they agree in source,
 * targets, transport and reduction, and reduce-only ones in their region too. Every rank that takes
 * part in a bucket comes to the same one.
 */
public final class Bucket {
  /**
   * One route in a bucket.
   *
   * @param tensor index of its plan in the list that was packed
   * @param route the route
   */
  public record Entry(int tensor, Route route) {}

  private record Key(
      int source,
      Transport transport,
      List<Integer> targets,
      List<Integer> sources,
      Optional<ReduceOp> op,
      Optional<Region> region) {}

  private final List<Entry> entries = new ArrayList<>();
  private long bytes;

  private Bucket() {}

  /**
   * Packs all routes of a batch.
   *
   * @param plans one for each tensor, in the batch's order
   * @param bucketBytes a bucket holds at most this; a route at least as large goes alone
   */
  public static List<Bucket> pack(List<Plan> plans, long bucketBytes) {
    return pack(
        plans, bucketBytes, (plan, tensor, sink) -> plan.forEachRoute(r -> sink.accept(r, tensor)));
  }

  /** Packs the routes of a batch that {@code rank} takes part in. */
  public static List<Bucket> pack(List<Plan> plans, int rank, long bucketBytes) {
    return pack(
        plans,
        bucketBytes,
        (plan, tensor, sink) -> plan.routesFor(rank).forEach(r -> sink.accept(r, tensor)));
  }

  /** The rank that sends, or for {@link Transport#NONE} the one that contributes. */
  public int source() {
    return entries.get(0).route().source();
  }

  public Transport transport() {
    return entries.get(0).route().transport();
  }

  /** The ranks that get the bucket; empty for {@link Transport#NONE}. */
  public List<Integer> targets() {
    return entries.get(0).route().targets();
  }

  /** The ranks whose terms make the bucket's values; the source alone without {@code Partial}. */
  public List<Integer> sources() {
    return entries.get(0).route().sources();
  }

  /** The routes, in the order of tensors. */
  public List<Entry> entries() {
    return Collections.unmodifiableList(entries);
  }

  /** Wire bytes of the bucket for one destination. */
  public long bytes() {
    return bytes;
  }

  private interface Selection {
    void of(Plan plan, int tensor, ObjIntConsumer<Route> sink);
  }

  private static List<Bucket> pack(List<Plan> plans, long bucketBytes, Selection selection) {
    if (bucketBytes < 1) {
      throw new InvalidArgumentException("bucketBytes is at least 1, not " + bucketBytes);
    }
    List<Bucket> buckets = new ArrayList<>();
    Map<Key, Bucket> open = new HashMap<>();
    ObjIntConsumer<Route> place =
        (route, tensor) -> {
          // An empty route counts as a byte, so that a bucket size of 1 keeps it alone too.
          long bytes = Math.max(1, route.bytes());
          Key key = key(route);
          Bucket bucket = bytes < bucketBytes ? open.get(key) : null;
          if (bucket == null || bucket.bytes > bucketBytes - bytes) {
            bucket = new Bucket();
            buckets.add(bucket);
            if (bytes < bucketBytes) {
              open.put(key, bucket);
            }
          }
          bucket.entries.add(new Entry(tensor, route));
          bucket.bytes += route.bytes();
        };
    for (int tensor = 0; tensor < plans.size(); tensor++) {
      selection.of(plans.get(tensor), tensor, place);
    }
    return buckets;
  }

  private static Key key(Route route) {
    Optional<Region> region =
        route.transport() == Transport.NONE ? Optional.of(route.region()) : Optional.empty();
    return new Key(
        route.source(), route.transport(), route.targets(), route.sources(), route.op(), region);
  }
}
