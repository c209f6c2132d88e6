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
 * A plan of how a tensor moves from one layout to another. It is a pure function of two layouts, a
 * shape, dtypes and options. Making a plan needs no communication, and every rank computes the same
 * routes.
 *
 * <p>Every target element is written once, with data from ranks that hold it. If several ranks do,
 * the planner chooses among these replicas in this order:
 *
 * <ol>
 *   <li>The target rank itself.
 *   <li>The replicas on the target rank's host. They share the sending to ranks of that host.
 *   <li>All replicas. They share the sending to hosts without a replica.
 * </ol>
 *
 * <p>If several ranks of a host need the same data from another host, one route goes to all of
 * them. Each element then crosses to that host once, as {@link HostTraffic} counts it.
 *
 * <p>For tensors of 1 MiB and more, replicas send equal amounts. The amounts differ by at most one
 * hundredth, unless the data of a single index of a dimension is larger than that. Data for another
 * host counts once, whatever number of its ranks need it. To make amounts equal, a region may be
 * cut through one dimension into parts from two replicas. If each of n replicas would send at least
 * n times 4 KiB of a region, each sends one part of the region to all its targets. Each part is
 * then read once. Smaller tensors are not cut, so the amounts may differ by one region.
 *
 * <p>With {@code Partial}, each target gets its values from one group of ranks that together hold
 * all terms. If the target itself is in such a group, that group is used.
 *
 * <p>A transfer runs these routes. In mode {@link TransferMode#GATHER_BROADCAST} the routes say
 * which rank's elements a target gets; the elements travel through the root.
 *
 * <p>The cost of a query for one rank depends on that rank's routes and not on the size of the
 * mesh. If there are several hosts, a query also visits the host of each target rank.
 */
public final class Plan {
  /**
   * Version of the planner. It increases with every change that gives other routes for the same
   * arguments.
   */
  public static final int VERSION = 3;

  private final TensorSpec source;
  private final TensorSpec target;
  private final DType wire;
  private final PlanOptions options;

  private Plan(TensorSpec source, TensorSpec target, DType wire, PlanOptions options) {
    this.source = source;
    this.target = target;
    this.wire = wire;
    this.options = options;
  }

  /**
   * Plans a tensor that has one dtype everywhere, with default options. Throws what {@link
   * #of(Layout, Layout, long[], DType, DType, DType, PlanOptions)} throws.
   */
  public static Plan of(Layout from, Layout to, long[] shape, DType dtype) {
    return of(from, to, shape, dtype, dtype, dtype, PlanOptions.defaults());
  }

  /**
   * Plans a tensor.
   *
   * @param from the source layout; may hold {@code Partial}
   * @param to the target layout
   * @param shape global extents of the tensor; empty for a scalar
   * @param dtype dtype of the source
   * @param wire dtype in which the tensor crosses ranks
   * @param targetDtype dtype of the target
   * @param options the same on every rank
   * @throws InvalidArgumentException if a layout does not fit the shape, the target holds {@code
   *     Partial}, or elements or bytes exceed 64 bits
   * @throws UnsupportedException if a dtype can't be converted to the next one, can't be reduced by
   *     the source's operation, or a cut falls inside a byte
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
   * Plans a tensor from one specification to another. Each may have its own padding.
   *
   * @param from the source
   * @param to the target
   * @param wire dtype in which the tensor crosses ranks
   * @param options the same on every rank
   * @throws InvalidArgumentException if the shapes differ, the target holds {@code Partial}, or
   *     elements or bytes exceed 64 bits
   * @throws UnsupportedException if a dtype can't be converted to the next one, can't be reduced by
   *     the source's operation, or a cut falls inside a byte
   */
  public static Plan of(TensorSpec from, TensorSpec to, DType wire, PlanOptions options) {
    Objects.requireNonNull(from, "from");
    Objects.requireNonNull(to, "to");
    Objects.requireNonNull(wire, "wire");
    Objects.requireNonNull(options, "options");
    PlanChecks.require(from, to, wire, options);
    return new Plan(from, to, wire, options);
  }

  /**
   * Returns the default dtype in which a tensor crosses ranks. It adds no rounding and moves the
   * fewest bytes: the target's dtype if that has fewer bits, otherwise the source's.
   */
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

  /** Returns the source layout. */
  public Layout from() {
    return source.layout();
  }

  /** Returns the target layout. */
  public Layout to() {
    return target.layout();
  }

  /** Returns the tensor's global extents. */
  public long[] shape() {
    return source.extents();
  }

  /** Returns the extents that the source layout cuts, including padding. */
  public long[] paddedFrom() {
    return source.paddedExtents();
  }

  /** Returns the extents that the target layout cuts, including padding. */
  public long[] paddedTo() {
    return target.paddedExtents();
  }

  /** Returns the dtype of the source. */
  public DType dtype() {
    return source.dtype();
  }

  /** Returns the dtype on the wire. */
  public DType wire() {
    return wire;
  }

  /** Returns the dtype of the target. */
  public DType targetDtype() {
    return target.dtype();
  }

  /** Returns the options that the plan was made with. */
  public PlanOptions options() {
    return options;
  }

  /** Returns all routes, ordered by the source's position in the source mesh. */
  public List<Route> routes() {
    List<Route> routes = new ArrayList<>();
    forEachRoute(routes::add);
    return routes;
  }

  /** Calls {@code action} with each route in the order of {@link #routes}, without storing them. */
  public void forEachRoute(Consumer<Route> action) {
    Objects.requireNonNull(action, "action");
    RouteFinder finder = finder();
    for (int place = 0; place < from().mesh().size(); place++) {
      finder.from(place).forEach(action);
    }
  }

  /** Returns the routes that {@code rank} takes part in, in the order of {@link #routes}. */
  public List<Route> routesFor(int rank) {
    checkRank(rank);
    return finder().touching(rank);
  }

  /** Returns the part of {@code rank} in each of its routes, in the order of {@link #routes}. */
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

  /**
   * Returns the bytes that a transfer of this plan moves: the sum over all routes. In mode {@link
   * TransferMode#GATHER_BROADCAST}, these are the bytes of the whole tensor, once to the root and
   * once to each target.
   */
  public Traffic traffic() {
    return Traffic.ofPlans(List.of(this));
  }

  /** Returns the totals of this plan's routes. */
  public Totals totals() {
    return Totals.of(List.of(this));
  }

  /**
   * Returns the ranks that read the route's terms to reduce them. In mode {@link
   * TransferMode#STAGED}, the source reads them and sends the result. In the other modes, the
   * targets read them.
   */
  List<Integer> readers(Route route) {
    boolean isPacked = options.mode() == TransferMode.STAGED && !route.targets().isEmpty();
    return isPacked ? List.of(route.source()) : route.targets();
  }

  boolean isGathering() {
    return options.mode() == TransferMode.GATHER_BROADCAST;
  }

  /** Returns an upper bound for the wire bytes of one route. */
  long mostRouteBytes() {
    long held = source.localRegion(from().mesh().rankAtPlace(0)).numel();
    long wanted = target.localRegion(to().mesh().rankAtPlace(0)).numel();
    return wire.bytesOf(Math.min(held, wanted));
  }

  /**
   * Returns the plan by which the root of {@link TransferMode#GATHER_BROADCAST} gathers the whole
   * tensor. The root is its only target.
   */
  Plan gather() {
    Layout whole = DeviceMesh.of(1).at(from().mesh().rankAtPlace(0)).layout(Placement.replicate());
    return of(source, TensorSpec.of("", wire, whole, shape()), wire, options);
  }

  /** Returns the plan by which each target copies its own part out of the whole tensor. */
  Plan cutOut() {
    return of(gather().target, target, wire, options.withMode(TransferMode.DIRECT));
  }

  /** Returns the routes that a transfer in mode {@link TransferMode#GATHER_BROADCAST} runs. */
  List<Route> gatheringRoutes() {
    Plan gather = gather();
    int root = gather.to().mesh().rankAtPlace(0);
    List<Route> routes = gather.routes();
    List<Integer> others = to().mesh().ranks().stream().filter(rank -> rank != root).toList();
    if (!others.isEmpty()) {
      Route.Values values = new Route.Values(wire, wire, Optional.empty());
      routes.add(Route.whole(root, others, shape(), values));
    }
    return routes;
  }

  List<Route> gatheringRoutes(int rank) {
    List<Route> routes = gatheringRoutes();
    routes.removeIf(route -> route.source() != rank && !route.targets().contains(rank));
    return routes;
  }

  /**
   * Returns the bytes of staging buffers that a transfer of only this plan needs, summed over all
   * ranks. In mode {@link TransferMode#DIRECT} the staging buffers hold only data that ranks relay
   * from other hosts to their own. In mode {@link TransferMode#STAGED} several tensors of a
   * transfer share buckets. Such a transfer needs less than the sum over its plans.
   */
  public long stagingBytes() {
    return stagingBytes(List.of(this));
  }

  /** Returns the staging bytes of one transfer of {@code plans}, summed over all ranks. */
  public static long stagingBytes(List<Plan> plans) {
    List<Plan> all = Copies.list(plans, "plans");
    BitSet ranks = new BitSet();
    for (Plan plan : all) {
      if (plan.options.mode() != TransferMode.DIRECT || plan.options.hosts().areSeveral()) {
        plan.from().mesh().ranks().forEach(ranks::set);
        plan.to().mesh().ranks().forEach(ranks::set);
      }
    }
    return ranks.stream().mapToLong(rank -> Schedule.stagingBytes(all, rank)).sum();
  }

  /** Returns the staging bytes that {@code rank} needs in one transfer of {@code plans}. */
  public static long stagingBytes(List<Plan> plans, int rank) {
    checkRank(rank);
    return Schedule.stagingBytes(Copies.list(plans, "plans"), rank);
  }

  /**
   * Passes the steps of {@code rank} in a transfer of {@code plans} to {@code steps}. For packages
   * of Windlass.
   *
   * @hidden
   */
  @SuppressWarnings("exports")
  public static void schedule(List<Plan> plans, int rank, Steps steps) {
    Schedule.of(plans, rank, steps);
  }

  /**
   * Returns the plan as one JSON object, which {@link #parse} reads. It holds layouts, shape,
   * dtypes, options and fingerprint, so its size does not depend on the size of the mesh.
   */
  public String toJson() {
    return PlanJson.encode(this);
  }

  /**
   * Parses a plan that {@link #toJson} wrote.
   *
   * @param json the text of the plan
   * @throws InvalidArgumentException if the text is not a plan, or its fingerprint is not that of
   *     the plan; the message names the key and the problem
   * @throws UnsupportedException if the dtypes do not fit, see {@link #of}
   */
  public static Plan parse(String json) {
    Objects.requireNonNull(json, "json");
    return PlanJson.decode(json);
  }

  /**
   * Returns a hash of the plan's arguments and of {@link #VERSION}. Ranks compare it before data
   * moves. The hash does not depend on the names of mesh dimensions.
   */
  public long fingerprint() {
    return PlanFingerprint.of(this);
  }

  @Override
  public String toString() {
    return "Plan " + from().qualified() + " -> " + to().qualified() + " of " + dtype()
        + Arrays.toString(shape()) + " by " + wire + " to " + targetDtype();
  }

  RouteFinder finder() {
    Optional<ReduceOp> op = from().partialOp();
    long[] shape = shape();
    return new RouteFinder(
        new Grid(from(), shape, source.paddedExtents()),
        new Grid(to(), shape, target.paddedExtents()),
        Shapes.numel(shape),
        options,
        new Route.Values(dtype(), wire, op));
  }

  static void checkRank(int rank) {
    if (rank < 0 || rank >= DeviceMesh.MAX_RANKS) {
      throw new InvalidArgumentException(
          "rank is " + rank + "; it must lie in [0, " + DeviceMesh.MAX_RANKS + ")");
    }
  }
}
