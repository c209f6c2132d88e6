// SPDX-License-Identifier: Apache-2.0
package org.windlass.plan;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashMap;
import java.util.Iterator;
import java.util.List;
import java.util.Map;
import org.windlass.DType;
import org.windlass.ReduceOp;
import org.windlass.error.InvalidArgumentException;
import org.windlass.internal.Shapes;
import org.windlass.internal.Steps;
import org.windlass.internal.Steps.Place;

/**
 * Makes the steps that one rank runs in a transfer. Each step runs in one phase of the run. A rank
 * stages data: it writes the data into its staging buffer. Data that is staged in one phase is read
 * in the next phase. Each rank makes only its own schedule.
 *
 * <p>A rank numbers the boxes that it stages. For each other rank, a reader numbers the boxes that
 * this other rank stages for it. Both numberings follow the order of buckets, then of tensors. This
 * order is the same on all ranks.
 */
final class Schedule {
  private static final int LINE = 64;

  private final List<Plan> plans;
  private final int rank;
  private final Steps steps;

  /**
   * Number of bytes that this rank has staged so far in each phase. Even phases use one half of the
   * staging buffer, odd phases the other half. The size of a half is that of its largest phase.
   */
  private long[] staged = new long[16];

  private int boxes;
  private final Map<Integer, Integer> read = new HashMap<>();

  /** For each source, the phases of its next loads that ranks of this host relay to other ranks. */
  private final Map<Integer, Iterator<Integer>> relayedPhases = new HashMap<>();

  private Schedule(List<Plan> plans, int rank, Steps steps) {
    this.plans = plans;
    this.rank = rank;
    this.steps = steps;
    for (Plan plan : plans) {
      Hosts hosts = plan.options().hosts();
      if (!hosts.equals(plans.get(0).options().hosts())) {
        throw new InvalidArgumentException(
            "plans of one transfer have different hosts: " + plans.get(0).options().hosts()
                + ", and " + hosts);
      }
    }
  }

  static void of(List<Plan> plans, int rank, Steps steps) {
    Schedule schedule = new Schedule(plans, rank, steps);
    schedule.direct();
    schedule.indirect();
  }

  static long stagingBytes(List<Plan> plans, int rank) {
    Schedule schedule = new Schedule(plans, rank, new Steps() {});
    if (!plans.isEmpty() && plans.get(0).options().hosts().areSeveral()) {
      schedule.direct();
    }
    schedule.indirect();
    long[] half = new long[2];
    for (int phase = 0; phase < schedule.staged.length; phase++) {
      half[phase & 1] = Math.max(half[phase & 1], schedule.staged[phase]);
    }
    return half[0] + half[1];
  }

  // ---- direct

  /**
   * A part of a route that crosses to this rank's host once and is for several ranks on that host.
   *
   * @param relay rank that reads the part from the other host
   * @param sharing ranks of this host that get the part, including the relay
   */
  private record Relayed(Piece piece, int relay, List<Integer> sharing) {}

  /** Smallest part of a route, in bytes, for which a separate relay is chosen. */
  private static final long LEAST_RELAYED = 64L << 10;

  private void direct() {
    List<Relayed> relayed = new ArrayList<>();
    for (int tensor = 0; tensor < plans.size(); tensor++) {
      int index = tensor;
      Plan plan = plans.get(tensor);
      if (plan.options().mode() != TransferMode.DIRECT) {
        continue;
      }
      for (Route route : arriving(plan)) {
        List<Integer> sharing = Relays.sharing(plan, route, rank);
        if (sharing.isEmpty()) {
          route.boxes().forEach(box -> move(0, new Piece(index, route, box)));
        } else {
          addRelayed(tensor, plan, route, sharing, relayed);
        }
      }
    }
    relay(relayed);
  }

  /**
   * Divides a route into parts, chooses a relay for each part, and appends the parts to {@code
   * relayed}. The parts are no larger than {@link Loads#mostBytes}.
   *
   * @param tensor index of the tensor in the transfer
   * @param sharing targets of the route on this rank's host
   */
  private static void addRelayed(
      int tensor, Plan plan, Route route, List<Integer> sharing, List<Relayed> relayed) {
    boolean isWorth = route.bytes() / sharing.size() >= LEAST_RELAYED;
    long most = Loads.mostBytes(route.bytes(), plan) / route.wire().bytes();
    int part = 0;
    for (Chunk.Box box : route.boxes()) {
      long numel = Shapes.numel(box.length());
      long each = isWorth ? (numel - 1) / sharing.size() + 1 : numel;
      for (Chunk.Box cut : Piece.cut(box, Math.max(1, Math.min(most, each)))) {
        int relay = Relays.of(plan, route, sharing, part++);
        relayed.add(new Relayed(new Piece(tensor, route, cut), relay, sharing));
      }
    }
  }

  /**
   * Adds the steps for parts with relays. This rank stages the parts that it relays, one load in
   * each phase. It copies all parts from the relays' staging buffers to its own targets.
   */
  private void relay(List<Relayed> relayed) {
    long all = 0;
    for (Relayed each : relayed) {
      all += each.relay == rank ? each.piece.bytes() : 0;
    }
    int phase = 0;
    long load = 0;
    for (Relayed each : relayed) {
      Piece piece = each.piece;
      if (each.relay == rank) {
        long most = Loads.mostBytes(all, plans.get(piece.tensor()));
        long bytes = piece.bytes();
        if (load > 0 && load > most - bytes) {
          phase++;
          load = 0;
        }
        load += bytes;
        write(phase, stage(phase, piece, reserve(phase, bytes), each.sharing), piece);
      }
      finalizePiece(piece, each.relay);
    }
  }

  private void indirect() {
    staged();
    int phase = 0;
    for (int tensor = 0; tensor < plans.size(); tensor++) {
      Plan plan = plans.get(tensor);
      if (plan.options().mode() == TransferMode.GATHER_BROADCAST
          && Shapes.numel(plan.shape()) > 0) {
        gathered(tensor, plan, phase++);
      }
    }
  }

  // ---- staged

  private void staged() {
    Loads.requireFew(
        plans.stream().filter(plan -> plan.options().mode() == TransferMode.STAGED).toList());
    Loads.Turns turns = new Loads.Turns();
    for (Bucket bucket : Bucket.packStaged(plans, rank)) {
      boolean sends = bucket.source() == rank;
      if (sends && bucket.targets().isEmpty()) {
        continue; // the other ranks read this rank's term from its memory
      }
      List<List<Piece>> loads = Loads.of(bucket, plans);
      if (!sends) {
        take(bucket, loads);
        continue;
      }
      int part = 0;
      for (List<Piece> load : loads) {
        int phase = turns.next(bucket.targets());
        if (bucket.transport() == Transport.LOCAL) {
          load.forEach(piece -> move(phase, piece));
        } else {
          prepare(phase, load, part);
        }
        part += load.size();
      }
    }
  }

  /**
   * Adds the steps that copy a bucket from another rank's staging buffer to this rank's targets. If
   * several targets on this host need the bucket, one of them, the relay, copies it to its own
   * staging buffer, and all of them copy it from there.
   */
  private void take(Bucket bucket, List<List<Piece>> loads) {
    int source = bucket.source();
    List<Integer> sharing = sharing(bucket);
    Iterator<Integer> turns =
        sharing.isEmpty()
            ? null
            : relayedPhases.computeIfAbsent(source, s -> turnsOf(s).iterator());
    int part = 0;
    for (List<Piece> load : loads) {
      int phase = turns == null ? 0 : turns.next() + 1;
      for (Piece piece : load) {
        int relay = turns == null ? source : relay(piece, sharing, part);
        part++;
        if (turns != null && relay == rank) {
          Place staged = stage(phase, piece, reserve(phase, piece.bytes()), sharing);
          Place there = new Place(nextFrom(source), piece.corner());
          copy(staged, piece.box().length(), source, there, piece.wire());
        }
        finalizePiece(piece, relay);
      }
    }
  }

  private List<Integer> sharing(Bucket bucket) {
    Bucket.Entry first = bucket.entries().get(0);
    return Relays.sharing(plans.get(first.tensor()), first.route(), rank);
  }

  private int relay(Piece piece, List<Integer> sharing, int part) {
    return Relays.of(plans.get(piece.tensor()), piece.route(), sharing, part);
  }

  /** Returns the phases in which {@code source} stages loads for several targets of this host. */
  private List<Integer> turnsOf(int source) {
    Loads.Turns turns = new Loads.Turns();
    List<Integer> phases = new ArrayList<>();
    for (Bucket bucket : Bucket.packStaged(plans, source)) {
      if (bucket.source() != source || bucket.targets().isEmpty()) {
        continue;
      }
      boolean shares = bucket.targets().contains(rank) && !sharing(bucket).isEmpty();
      for (int load = Loads.of(bucket, plans).size(); load > 0; load--) {
        int phase = turns.next(bucket.targets());
        if (shares) {
          phases.add(phase);
        }
      }
    }
    return phases;
  }

  /**
   * Adds the steps that stage a load. {@code part} is the number of pieces in the bucket before the
   * load.
   */
  private void prepare(int phase, List<Piece> load, int part) {
    long offset = reserve(phase, load.stream().mapToLong(Piece::bytes).sum());
    for (Piece piece : load) {
      List<Integer> readers = Relays.readers(plans.get(piece.tensor()), piece.route(), part++);
      write(phase, stage(phase, piece, offset, readers), piece);
      offset += piece.bytes();
    }
  }

  private void finalizePiece(Piece piece, int source) {
    Place target = new Place(piece.tensor(), piece.box().targetStart());
    Place staged = new Place(nextFrom(source), piece.corner());
    copy(target, piece.box().length(), source, staged, piece.wire());
  }

  private void move(int phase, Piece piece) {
    write(phase, new Place(piece.tensor(), piece.box().targetStart()), piece);
  }

  private void write(int phase, Place target, Piece piece) {
    Place source = new Place(piece.tensor(), piece.box().sourceStart());
    Route route = piece.route();
    steps.write(
        phase,
        target,
        piece.box().length(),
        route.sources(),
        source,
        piece.wire().code(),
        route.op().orElse(ReduceOp.SUM).code());
  }

  // ---- gathered

  private void gathered(int tensor, Plan plan, int phase) {
    Plan gather = plan.gather();
    int root = gather.to().mesh().rankAtPlace(0);
    DType wire = plan.wire();
    long[] shape = plan.shape();
    long[] corner = new long[shape.length];
    if (rank == root) {
      List<Integer> readers = Relays.readersOfWhole(plan, root);
      int stage = stage(phase, wire, shape, reserve(phase, plan), readers);
      for (Piece piece : written(tensor, gather)) {
        write(phase, new Place(stage, piece.box().targetStart()), piece);
      }
    }
    if (!plan.to().mesh().contains(rank)) {
      return;
    }
    if (rank != root) {
      int giver = Relays.giverOfWhole(plan, root, rank);
      int next = giver == root ? phase + 1 : phase + 2;
      List<Integer> readers =
          giver == root && !plan.options().hosts().areTogether(root, rank)
              ? Relays.together(plan.options().hosts(), plan.to().mesh().ranks(), rank)
              : List.of(rank);
      int stage = stage(next, wire, shape, reserve(next, plan), readers);
      copy(new Place(stage, corner), shape, giver, new Place(nextFrom(giver), corner), wire);
    }
    int copied = nextFrom(rank);
    for (Piece piece : written(tensor, plan.cutOut())) {
      Place target = new Place(tensor, piece.box().targetStart());
      Place source = new Place(copied, piece.box().sourceStart());
      copy(target, piece.box().length(), rank, source, wire);
    }
  }

  private List<Piece> written(int tensor, Plan plan) {
    return arriving(plan).stream()
        .flatMap(route -> route.boxes().stream().map(box -> new Piece(tensor, route, box)))
        .toList();
  }

  private List<Route> arriving(Plan plan) {
    return plan.chunksFor(rank).stream().filter(Chunk::isTarget).map(Chunk::route).toList();
  }

  // ---- stages

  /** Reserves space for a whole tensor. Returns its byte offset in the phase's half buffer. */
  private long reserve(int phase, Plan whole) {
    return reserve(phase, whole.wire().bytesOf(Shapes.numel(whole.shape())));
  }

  private long reserve(int phase, long bytes) {
    if (phase >= staged.length) {
      staged = Arrays.copyOf(staged, Math.max(phase + 1, 2 * staged.length));
    }
    long offset = staged[phase];
    staged[phase] += (bytes + LINE - 1) / LINE * LINE;
    return offset;
  }

  private Place stage(int phase, Piece piece, long offset, List<Integer> readers) {
    return new Place(
        stage(phase, piece.wire(), piece.box().length(), offset, readers), piece.corner());
  }

  /**
   * Adds a step that reserves a box in the staging buffer. A write names the box by the result.
   */
  private int stage(int phase, DType dtype, long[] shape, long offset, List<Integer> readers) {
    steps.stage(phase, dtype.code(), shape, offset, readers);
    return -1 - boxes++;
  }

  /** Returns the number of the next box that {@code source} stages for this rank. */
  private int nextFrom(int source) {
    return -read.merge(source, 1, Integer::sum);
  }

  private void copy(Place target, long[] length, int from, Place source, DType wire) {
    steps.write(0, target, length, List.of(from), source, wire.code(), ReduceOp.SUM.code());
  }
}
