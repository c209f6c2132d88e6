// SPDX-License-Identifier: Apache-2.0
package org.windlass.plan;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.BitSet;
import java.util.List;
import java.util.Objects;
import java.util.Optional;
import java.util.function.Consumer;
import org.windlass.DType;
import org.windlass.ReduceOp;
import org.windlass.error.InvalidArgumentException;
import org.windlass.error.UnsupportedException;
import org.windlass.internal.Copies;
import org.windlass.internal.Shapes;
import org.windlass.internal.Steps;
import org.windlass.layout.DeviceMesh;
import org.windlass.layout.Layout;
import org.windlass.layout.Placement;
import org.windlass.layout.TensorSpec;

/**
 * A plan of how a tensor of one layout becomes the same tensor under another: a pure function of
 * two layouts, a shape, dtypes and options. It asks no rank anything, and every rank that makes it
 * comes to the same routes.
 *
 * <p>Every target element is written once, from ranks that hold it. Among replicas the rank itself
 * comes first, then those on its host; the ranks of one host, and all hosts without a replica, are
 * shared among replicas. What several ranks of a host need from others is one route to all of them:
 * each element has to cross to that host once, as {@link HostTraffic} counts it. Of a tensor of
 * 1 MiB and more replicas send the same amount to within a hundredth, as far as rows allow, where
 * what goes to another host counts once: a region is cut, through one dimension, where a share
 * ends. Where n senders would have at least n times 4 KiB each, what several targets get is cut
 * into the same parts for all of them, so that each part is read once. Smaller tensors are shared
 * to within one region. With {@code Partial} a whole group of terms serves a target, the group that
 * contains it first.
 *
 * <p>The routes are those that run. In mode {@link TransferMode#GATHER_BROADCAST} they name whose
 * elements a target gets, by way of the root.
 *
 * <p>What one rank asks for costs what its own routes cost, whatever the mesh; with several hosts,
 * beside that a look at the host of each target rank.
 */
public final class Plan {
  /** That of the planner: changes whenever equal arguments give other routes. */
  public static final int VERSION = 3;

  private final TensorSpec source;
  private final TensorSpec target;
  private final Layout from;
  private final Layout to;
  private final long[] shape;
  private final DType wire;
  private final PlanOptions options;

  private Plan(TensorSpec source, TensorSpec target, DType wire, PlanOptions options) {
    this.source = source;
    this.target = target;
    this.from = source.layout();
    this.to = target.layout();
    this.shape = source.extents();
    this.wire = wire;
    this.options = options;
  }

  /** The plan for one dtype all the way, with default options. */
  public static Plan of(Layout from, Layout to, long[] shape, DType dtype) {
    return of(from, to, shape, dtype, dtype, dtype, PlanOptions.defaults());
  }

  /** The plan with default options. */
  public static Plan of(
      Layout from, Layout to, long[] shape, DType dtype, DType wire, DType targetDtype) {
    return of(from, to, shape, dtype, wire, targetDtype, PlanOptions.defaults());
  }

  /**
   * The plan of a tensor.
   *
   * @param from how the tensor lies; may hold {@code Partial}
   * @param to how it shall lie
   * @param shape its global extents; empty for a scalar
   * @param dtype of the source
   * @param wire in which it crosses ranks
   * @param targetDtype of the target
   * @param options the same on every rank
   * @throws InvalidArgumentException if a layout does not fit the shape, the target holds {@code
   *     Partial}, or elements or bytes exceed 64 bits
   * @throws UnsupportedException if a dtype does not become the next, does not reduce by the
   *     source's operation, or is smaller than a byte and a cut falls inside one
   */
  public static Plan of(
      Layout from,
      Layout to,
      long[] shape,
      DType dtype,
      DType wire,
      DType targetDtype,
      PlanOptions options) {
    Objects.requireNonNull(from, "from");
    Objects.requireNonNull(to, "to");
    Objects.requireNonNull(dtype, "dtype");
    Objects.requireNonNull(targetDtype, "targetDtype");
    return of(
        TensorSpec.of("", dtype, from, shape),
        TensorSpec.of("", targetDtype, to, shape),
        wire,
        options);
  }

  /**
   * The plan of a tensor that lies as {@code from} says and shall lie as {@code to} does, each with
   * padding of its own.
   *
   * @param wire in which it crosses ranks
   * @param options the same on every rank
   * @throws InvalidArgumentException if the shapes differ, the target holds {@code Partial}, or
   *     elements or bytes exceed 64 bits
   * @throws UnsupportedException as the other form
   */
  public static Plan of(TensorSpec from, TensorSpec to, DType wire, PlanOptions options) {
    Objects.requireNonNull(from, "from");
    Objects.requireNonNull(to, "to");
    Objects.requireNonNull(wire, "wire");
    Objects.requireNonNull(options, "options");
    PlanChecks.require(from, to, wire, options);
    return new Plan(from, to, wire, options);
  }

  /** The wire dtype that adds no rounding and moves fewest bytes: the smaller, or the source's. */
  public static DType defaultWire(DType source, DType target) {
    Objects.requireNonNull(source, "source");
    Objects.requireNonNull(target, "target");
    return target.bits() < source.bits() ? target : source;
  }

  TensorSpec source() {
    return source;
  }

  TensorSpec target() {
    return target;
  }

  /** The source layout. */
  public Layout from() {
    return from;
  }

  /** The target layout. */
  public Layout to() {
    return to;
  }

  /** The tensor's global extents. */
  public long[] shape() {
    return shape.clone();
  }

  /** The extents that the source's layout cuts; {@link #shape} without padding. */
  public long[] paddedFrom() {
    return source.paddedExtents();
  }

  /** The extents that the target's layout cuts; {@link #shape} without padding. */
  public long[] paddedTo() {
    return target.paddedExtents();
  }

  /** The source's dtype. */
  public DType dtype() {
    return source.dtype();
  }

  /** The dtype on the wire. */
  public DType wire() {
    return wire;
  }

  /** The dtype of the target. */
  public DType targetDtype() {
    return target.dtype();
  }

  /** How it was made. */
  public PlanOptions options() {
    return options;
  }

  /** All routes, by the source's place in the source mesh. */
  public List<Route> routes() {
    List<Route> routes = new ArrayList<>();
    forEachRoute(routes::add);
    return routes;
  }

  /** Calls {@code action} with all routes in the order of {@link #routes}, without keeping them. */
  public void forEachRoute(Consumer<Route> action) {
    Objects.requireNonNull(action, "action");
    RouteFinder finder = finder();
    for (int place = 0; place < from.mesh().size(); place++) {
      finder.from(place).forEach(action);
    }
  }

  /** The routes that {@code rank} takes part in, in the order of {@link #routes}. */
  public List<Route> routesFor(int rank) {
    checkRank(rank);
    return finder().touching(rank);
  }

  /** The routes that {@code rank} takes part in, as it sees them. */
  public List<Chunk> chunksFor(int rank) {
    List<Route> routes = routesFor(rank);
    List<Chunk> chunks = new ArrayList<>(routes.size());
    for (Route route : routes) {
      boolean isSource = route.source() == rank;
      boolean isTarget =
          isSource ? route.transport() == Transport.LOCAL : route.transport() != Transport.NONE;
      chunks.add(new Chunk(route, rank, isSource, isTarget));
    }
    return chunks;
  }

  /** The buckets of all routes of this plan. */
  public List<Bucket> buckets() {
    return Bucket.pack(List.of(this));
  }

  /** The buckets of the routes that {@code rank} takes part in. */
  public List<Bucket> bucketsFor(int rank) {
    return Bucket.pack(List.of(this), rank);
  }

  /**
   * The bytes that a transfer moves: those of all routes; in mode {@link
   * TransferMode#GATHER_BROADCAST} the whole tensor to the root and to each target.
   */
  public Traffic traffic() {
    return Traffic.ofPlans(List.of(this));
  }

  /** {@link #traffic} of those routes alone that {@code rank} takes part in. */
  public Traffic trafficFor(int rank) {
    return Traffic.ofPlans(List.of(this), rank);
  }

  /** The {@link Totals} of this plan alone. */
  public Totals totals() {
    return Totals.of(List.of(this));
  }

  /** Who reads a route's terms to reduce them: a bucket's source, once for all its targets. */
  List<Integer> readers(Route route) {
    boolean isPacked = options.mode() == TransferMode.STAGED && !route.targets().isEmpty();
    return isPacked ? List.of(route.source()) : route.targets();
  }

  boolean isGathering() {
    return options.mode() == TransferMode.GATHER_BROADCAST;
  }

  /** No route has more on the wire: the first ranks of both meshes hold the largest parts. */
  long mostRouteBytes() {
    long held = source.localRegion(from.mesh().rankAtPlace(0)).numel();
    long wanted = target.localRegion(to.mesh().rankAtPlace(0)).numel();
    return wire.bytesOf(Math.min(held, wanted));
  }

  /** How the root of {@link TransferMode#GATHER_BROADCAST} comes by the whole tensor. */
  Plan gather() {
    Layout whole = DeviceMesh.of(1).at(from.mesh().rankAtPlace(0)).layout(Placement.replicate());
    return of(source, TensorSpec.of("", wire, whole, shape), wire, options);
  }

  /** What each target cuts out of the whole tensor. */
  Plan cutOut() {
    return of(gather().target, target, wire, options.withMode(TransferMode.DIRECT));
  }

  /** What moves in mode {@link TransferMode#GATHER_BROADCAST}. */
  List<Route> gatheringRoutes() {
    Plan gather = gather();
    int root = gather.to.mesh().rankAtPlace(0);
    List<Route> routes = gather.routes();
    List<Integer> others = to.mesh().ranks().stream().filter(rank -> rank != root).toList();
    if (!others.isEmpty()) {
      routes.add(Route.whole(root, others, shape, new Route.Terms(wire, wire, Optional.empty())));
    }
    return routes;
  }

  /** Those of {@link #gatheringRoutes()} that {@code rank} takes part in. */
  List<Route> gatheringRoutes(int rank) {
    List<Route> routes = gatheringRoutes();
    routes.removeIf(route -> route.source() != rank && !route.targets().contains(rank));
    return routes;
  }

  /**
   * Bytes that a transfer of this plan alone stages beside its tensors, on all ranks together: in
   * mode {@link TransferMode#DIRECT} what ranks stage of other hosts for those of theirs, else
   * none. In mode {@link TransferMode#STAGED} tensors of a transfer share buckets, so that it takes
   * less than their sum.
   */
  public long stagingBytes() {
    return stagingBytes(List.of(this));
  }

  /** {@link #stagingBytes()} of one rank. */
  public long stagingBytesFor(int rank) {
    return stagingBytes(List.of(this), rank);
  }

  /** Bytes that a transfer of {@code plans} together stages, on all ranks. */
  public static long stagingBytes(List<Plan> plans) {
    List<Plan> all = Copies.list(plans, "plans");
    BitSet ranks = new BitSet();
    for (Plan plan : all) {
      if (plan.options.mode() != TransferMode.DIRECT || plan.options.hosts().areSeveral()) {
        plan.from.mesh().ranks().forEach(ranks::set);
        plan.to.mesh().ranks().forEach(ranks::set);
      }
    }
    return ranks.stream().mapToLong(rank -> Schedule.stagingBytes(all, rank)).sum();
  }

  /** Bytes that {@code rank} stages in a transfer of {@code plans} together. */
  public static long stagingBytes(List<Plan> plans, int rank) {
    checkRank(rank);
    return Schedule.stagingBytes(Copies.list(plans, "plans"), rank);
  }

  /**
   * Gives the steps of {@code rank} in a transfer of {@code plans} to {@code steps}. For packages
   * of Windlass.
   *
   * @hidden
   */
  @SuppressWarnings("exports")
  public static void schedule(List<Plan> plans, int rank, Steps steps) {
    Schedule.of(plans, rank, steps);
  }

  /**
   * The plan as one JSON object, from which {@link #parse} makes it again: layouts, shape, dtypes,
   * options and fingerprint, whose size does not depend on that of the mesh.
   */
  public String toJson() {
    return PlanJson.encode(this);
  }

  /**
   * The plan that {@link #toJson} wrote.
   *
   * @throws InvalidArgumentException if the text is anything else: it names the key, and what is
   *     wrong there; or if the fingerprint is not that of the plan
   * @throws UnsupportedException as {@link #of} does
   */
  public static Plan parse(String json) {
    Objects.requireNonNull(json, "json");
    return PlanJson.decode(json);
  }

  /**
   * A hash of layouts, shape, padding, dtypes, options and the version of the planner. Ranks
   * compare it before a byte moves; mesh dimension names do not enter.
   */
  public long fingerprint() {
    return PlanFingerprint.of(this);
  }

  @Override
  public String toString() {
    return "Plan " + from.qualified() + " -> " + to.qualified() + " of " + dtype()
        + Arrays.toString(shape) + " by " + wire + " to " + targetDtype();
  }

  RouteFinder finder() {
    Optional<ReduceOp> op = from.partialOp();
    return new RouteFinder(
        new Grid(from, shape, source.paddedExtents()),
        new Grid(to, shape, target.paddedExtents()),
        Shapes.numel(shape),
        options,
        new Route.Terms(dtype(), wire, op));
  }

  /** Checks that {@code rank} is one that a mesh may hold. */
  static void checkRank(int rank) {
    if (rank < 0 || rank >= DeviceMesh.MAX_RANKS) {
      throw new InvalidArgumentException(
          "rank is " + rank + "; it must lie in [0, " + DeviceMesh.MAX_RANKS + ")");
    }
  }
}
