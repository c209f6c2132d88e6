// SPDX-License-Identifier: Apache-2.0
package org.windlass.plan;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.Random;
import org.junit.jupiter.api.Test;
import org.windlass.DType;
import org.windlass.LocalGroup;
import org.windlass.ReduceOp;
import org.windlass.Tensor;
import org.windlass.error.InvalidArgumentException;
import org.windlass.error.UnsupportedException;
import org.windlass.error.WindlassException;
import org.windlass.internal.Steps;
import org.windlass.layout.Layout;
import org.windlass.layout.TensorSpec;
import org.windlass.testing.RandomLayouts;
import org.windlass.testing.RandomSeeds;
import org.windlass.transfer.TransferBuilder;

/** Plans whose routes can be checked by hand. */
class PlanTest {
  @Test
  void shardsOverlapShards() {
    assertThat(routes("2:S0", "3:S0", 6))
        .containsExactly(
            "P2P 0 -> [2] [0,2)", "P2P 0 -> [3] [2,3)", "P2P 1 -> [3] [3,4)", "P2P 1 -> [4] [4,6)");
    assertThat(routes("2:S0", "2:S1", 4, 2))
        .containsExactly(
            "P2P 0 -> [2] [0,2) x [0,1)",
            "P2P 0 -> [3] [0,2) x [1,2)",
            "P2P 1 -> [2] [2,4) x [0,1)",
            "P2P 1 -> [3] [2,4) x [1,2)");
  }

  @Test
  void aTermOfNothingHasARegionOfNothing() {
    // Three ranks cut two rows: the last one holds none, and signals all the same.
    Layout from = Layout.parse("2x3:P,S0");
    Plan plan = Plan.of(from, Layout.parse("1@6:R"), new long[] {2, 4}, DType.F32);
    for (int rank = 0; rank < 6; rank++) {
      for (Chunk chunk : plan.chunksFor(rank)) {
        assertThat(chunk.route().region().numel()).isEqualTo(chunk.route().numel());
        assertThat(chunk.route()).isEqualTo(chunk.route());
        assertThat(chunk.route().toString()).contains(" -> ");
      }
    }
    assertThat(plan.chunksFor(2)).hasSize(1);
    assertThat(plan.chunksFor(2).get(0).route().region().isEmpty()).isTrue();
  }

  @Test
  void replicatedTargetsGetABroadcast() {
    assertThat(routes("1:R", "3:R", 5)).containsExactly("BROADCAST 0 -> [1, 2, 3] [0,5)");
    assertThat(routes("2:R", "4:R", 5))
        .containsExactly("BROADCAST 0 -> [2, 3] [0,5)", "BROADCAST 1 -> [4, 5] [0,5)");
  }

  @Test
  void replicasShareTheSending() {
    assertThat(routes("2:R", "4:S0", 8))
        .containsExactly(
            "P2P 0 -> [2] [0,2)", "P2P 0 -> [3] [2,4)", "P2P 1 -> [4] [4,6)", "P2P 1 -> [5] [6,8)");
  }

  @Test
  void aRankServesItselfFirstAndOthersThen() {
    assertThat(routes("2:R", "4@0:R", 8))
        .containsExactly(
            "LOCAL 0 -> [0] [0,8)",
            "P2P 0 -> [2] [0,8)",
            "LOCAL 1 -> [1] [0,8)",
            "P2P 1 -> [3] [0,8)");
  }

  @Test
  void aReplicaOnTheSameHostComesBeforeOthers() {
    Layout from = Layout.parse("4@[0,1,4,5]:R");
    Layout to = Layout.parse("6@[2,3,6,7,8,9]:R");
    PlanOptions options = PlanOptions.defaults().withHosts(Hosts.ofEach(4));
    assertThat(routes(hosted(from, to, options, 8)))
        .containsExactlyInAnyOrder(
            "P2P 0 -> [2] [0,8)",
            "P2P 1 -> [3] [0,8)",
            "P2P 4 -> [6] [0,8)",
            "P2P 5 -> [7] [0,8)",
            "BROADCAST 0 -> [8, 9] [0,8)");
    assertThat(routes(hosted(from, to, options.withTurn(1), 8)))
        .contains("P2P 1 -> [2] [0,8)", "P2P 0 -> [3] [0,8)", "BROADCAST 1 -> [8, 9] [0,8)");
    assertThat(routes(hosted(Layout.parse("2@[0,4]:R"), to, options, 8)))
        .containsExactly(
            "BROADCAST 0 -> [2, 3] [0,8)",
            "BROADCAST 0 -> [8, 9] [0,8)",
            "BROADCAST 4 -> [6, 7] [0,8)");
  }

  @Test
  void theLargestTurnIsOne() {
    Layout from = Layout.parse("4@[0,1,4,5]:R");
    Layout to = Layout.parse("6@[2,3,6,7,8,9]:R");
    PlanOptions options = PlanOptions.defaults().withHosts(Hosts.ofEach(4));
    // 2^31 - 1 is 1 of 2 and 3 of 4.
    Plan last = hosted(from, to, options.withTurn(Integer.MAX_VALUE), 8);
    assertThat(routes(last)).isEqualTo(routes(hosted(from, to, options.withTurn(3), 8)));
  }

  private static Plan hosted(Layout from, Layout to, PlanOptions options, long... shape) {
    return Plan.of(from, to, shape, DType.F32, DType.F32, DType.F32, options);
  }

  private static List<String> routes(Plan plan) {
    return plan.routes().stream().map(Route::toString).toList();
  }

  @Test
  void theTurnChoosesTheFirstReplica() {
    Layout from = Layout.parse("3:R");
    Layout to = Layout.parse("1@3:R");
    for (int turn = 0; turn < 6; turn++) {
      PlanOptions options = PlanOptions.defaults().withTurn(turn);
      Plan plan = Plan.of(from, to, new long[] {4}, DType.F32, DType.F32, DType.F32, options);
      assertThat(plan.routes()).hasSize(1);
      assertThat(plan.routes().get(0).source()).isEqualTo(turn % 3);
      assertThat(plan.routesFor(3)).isEqualTo(plan.routes());
    }
  }

  @Test
  void termsServeATargetAsAGroup() {
    assertThat(routes("2:P", "2:S0", 4))
        .containsExactly(
            "P2P 0 of [0, 1] -> [2] [0,2)",
            "NONE 0 of [0, 1] -> [] [2,4)",
            "P2P 1 of [0, 1] -> [3] [2,4)",
            "NONE 1 of [0, 1] -> [] [0,2)");
    assertThat(routes("2x2:P,S0", "1@0:R", 4))
        .containsExactly(
            "LOCAL 0 of [0, 2] -> [0] [0,2)",
            "P2P 1 of [1, 3] -> [0] [2,4)",
            "NONE 2 of [0, 2] -> [] [0,2)",
            "NONE 3 of [1, 3] -> [] [2,4)");
  }

  @Test
  void termsOfAnEmptyPieceTakePartAtSizeZero() {
    assertThat(routes("2x2:P,S0", "1:R", 1))
        .containsExactly(
            "P2P 0 of [0, 2] -> [4] [0,1)",
            "NONE 1 of [1, 3] -> [] [0,0)",
            "NONE 2 of [0, 2] -> [] [0,1)",
            "NONE 3 of [1, 3] -> [] [0,0)");
  }

  @Test
  void severalPartialDimensionsAreOneGroupInRowMajorOrder() {
    List<Route> routes = plan("2x2x2@[5,1,7,3,0,2,6,4]:P,R,P", "1@8:R", 4).routesFor(8);
    assertThat(routes).hasSize(1);
    assertThat(routes.get(0).sources()).containsExactly(5, 1, 0, 2);
    assertThat(routes.get(0).op()).contains(ReduceOp.SUM);
  }

  @Test
  void scalarsAndEmptyTensors() {
    assertThat(routes("1:R", "2:R")).containsExactly("BROADCAST 0 -> [1, 2] scalar");
    assertThat(plan("1:R", "2:R").chunksFor(2).get(0).boxes()).hasSize(1);
    assertThat(plan("1:R", "2:R").totals().sentBytes()).isEqualTo(8);
    assertThat(routes("2:S0", "2:S1", 0, 5)).isEmpty();
  }

  @Test
  void stridedRegionsListTheirIntervals() {
    Plan plan = plan("1:R", "2:SS0/2", 8);
    assertThat(plan.routes().get(0).region()).hasToString("[0,2)+[4,6)");
    List<Chunk.Box> boxes = plan.chunksFor(1).get(0).boxes();
    assertThat(boxes).hasSize(2);
    assertThat(boxes.get(1).sourceStart()).containsExactly(4);
    assertThat(boxes.get(1).targetStart()).containsExactly(2);
  }

  @Test
  void boxesJoinWhereBothLocalTensorsAreContiguous() {
    Plan plan = plan("2:SS0/2", "2:SS0/2", 8);
    Chunk chunk = plan.chunksFor(2).get(0);
    assertThat(chunk.route().region()).hasToString("[0,2)+[4,6)");
    assertThat(chunk.boxes()).hasSize(1);
    assertThat(chunk.boxes().get(0).length()).containsExactly(4);
  }

  @Test
  void chunksSayWhoReadsAndWhoWrites() {
    Plan plan = plan("2:P", "1@0:R", 4);
    Chunk local = plan.chunksFor(0).get(0);
    assertThat(local.transport()).isEqualTo(Transport.LOCAL);
    assertThat(local.isSource() && local.isTarget()).isTrue();
    Chunk term = plan.chunksFor(1).get(0);
    assertThat(term.transport()).isEqualTo(Transport.NONE);
    assertThat(term.isSource()).isTrue();
    assertThat(term.isTarget()).isFalse();
    Chunk received = plan("1:R", "1:R", 4).chunksFor(1).get(0);
    assertThat(received.isSource()).isFalse();
    assertThat(received.isTarget()).isTrue();
  }

  @Test
  void trafficCountsWireBytes() {
    Plan plan =
        Plan.of(
            Layout.parse("2x2:P,S0"),
            Layout.parse("2@3:R"),
            new long[] {4, 8},
            DType.F32,
            DType.BF16,
            DType.BF16,
            PlanOptions.defaults());
    Traffic traffic = plan.traffic();
    Totals totals = plan.totals();
    assertThat(totals.sentBytes() + totals.localBytes()).isEqualTo(2 * 32 * 2);
    assertThat(totals.localBytes()).isEqualTo(16 * 2);
    assertThat(totals.reduceBytes()).isEqualTo(2 * 32 * 4);
    assertThat(traffic.links().stream().mapToLong(Traffic.Link::bytes).sum()).isEqualTo(128);
    // Ranks 3 and 4 each sum all rows themselves: of two terms one is on a link, one a read.
    assertThat(traffic.reads().stream().mapToLong(Traffic.Link::bytes).sum())
        .isEqualTo(totals.reduceBytes());
    assertThat(traffic.reads()).allMatch(read -> read.source() < 4 && read.target() >= 3);
    assertThat(Totals.of(List.of(plan), 4).sentBytes()).isEqualTo(64);
    assertThat(plan.stagingBytes()).isZero();
    // The other rows and terms go to rank 0, and all rows in bf16 to ranks 3 and 4.
    Traffic gathered = inMode(TransferMode.GATHER_BROADCAST, plan).traffic();
    assertThat(gathered.links())
        .containsExactly(
            new Traffic.Link(0, 0, 32),
            new Traffic.Link(0, 3, 64),
            new Traffic.Link(0, 4, 64),
            new Traffic.Link(1, 0, 32));
    Totals sums = inMode(TransferMode.GATHER_BROADCAST, plan).totals();
    assertThat(sums.sentBytes()).isEqualTo(160);
    assertThat(sums.reduceBytes()).isEqualTo(32 * 4);
    assertThat(gathered.reads())
        .containsExactly(new Traffic.Link(2, 0, 64), new Traffic.Link(3, 0, 64));
    // In a bucket the sum is there once for all that get it, and its source has made it.
    Traffic staged = inMode(TransferMode.STAGED, plan).traffic();
    assertThat(staged.reads()).noneMatch(read -> read.target() == 4);
    List<Plan> gathering = List.of(inMode(TransferMode.GATHER_BROADCAST, plan));
    assertThat(Traffic.ofPlans(gathering, 1).links())
        .containsExactly(new Traffic.Link(1, 0, 32));
  }

  @Test
  void bucketsKeepKeysApartAndFlushBeforeTheyOverflow() {
    Layout from = Layout.parse("2:S0");
    Layout to = Layout.parse("2@2:S0");
    List<Plan> plans =
        List.of(16L, 16L, 400L, 16L, 16L).stream()
            .map(n -> Plan.of(from, to, new long[] {n}, DType.U8))
            .toList();
    List<Bucket> buckets = Bucket.pack(withBucketBytes(24, plans), 2);
    assertThat(buckets.stream().map(b -> b.entries().stream().map(Bucket.Entry::tensor).toList()))
        .containsExactly(List.of(0, 1, 3), List.of(2), List.of(4));
    assertThat(Bucket.pack(withBucketBytes(1, plans), 2)).hasSize(5);
    assertThat(Bucket.pack(plans)).hasSize(2);
    List<Plan> several = new ArrayList<>(plans);
    several.addAll(withBucketBytes(1 << 20, plans));
    assertThat(Bucket.pack(several)).hasSize(4);
  }

  static List<Plan> withBucketBytes(long bytes, List<Plan> plans) {
    return plans.stream().map(p -> with(p.options().withBucketBytes(bytes), p)).toList();
  }

  static Plan inMode(TransferMode mode, Plan plan) {
    return with(plan.options().withMode(mode), plan);
  }

  private static Plan with(PlanOptions options, Plan plan) {
    return Plan.of(
        TensorSpec.of("", plan.dtype(), plan.from(), plan.shape()).padded(plan.paddedFrom()),
        TensorSpec.of("", plan.targetDtype(), plan.to(), plan.shape()).padded(plan.paddedTo()),
        plan.wire(),
        options);
  }

  @Test
  void stagingIsWhatItsDefinitionSays() {
    // Each of 2 sources sends 2 peers 4 x 4 elements: 64 bytes.
    Plan plan = plan("2:S0", "2:S1", 8, 8);
    assertThat(plan.stagingBytes()).isZero();
    // One bucket to each peer, all in the first of two phases.
    Plan staged = inMode(TransferMode.STAGED, plan);
    assertThat(staged.stagingBytes()).isEqualTo(2 * 2 * 64);
    assertThat(Plan.stagingBytes(List.of(staged), 1)).isEqualTo(2 * 64);
    assertThat(Plan.stagingBytes(List.of(staged), 2)).isZero();
    // In pieces of two rows, which take whole lines and turns.
    assertThat(withBucketBytes(32, List.of(staged)).get(0).stagingBytes())
        .isEqualTo(2 * 2 * 2 * 64);
    // A broadcast is staged once for both peers; what stays on a rank is not.
    assertThat(inMode(TransferMode.STAGED, plan("1:S0", "2:R", 16)).stagingBytes()).isEqualTo(64);
    assertThat(inMode(TransferMode.STAGED, plan("1:R", "1@0:R", 16)).stagingBytes()).isZero();
    // Tensors of a transfer share buckets; the second has room beside the first.
    List<Plan> both =
        List.of(
            inMode(TransferMode.STAGED, plan("1:R", "1:R", 8)),
            inMode(TransferMode.STAGED, plan("1:R", "1:R", 8)));
    assertThat(Plan.stagingBytes(both)).isEqualTo(64);
    // The whole on the root and on each target.
    List<Plan> gathering = List.of(inMode(TransferMode.GATHER_BROADCAST, plan));
    assertThat(Plan.stagingBytes(gathering)).isEqualTo(3 * 256);
    assertThat(Plan.stagingBytes(gathering, 1)).isZero();
  }

  /** 67 million elements: a bucket each would be as many turns, and steps as many. */
  @Test
  void aPlanIsNoLongerForBucketsOfAByte() {
    Plan plan = inMode(TransferMode.STAGED, plan("4:S0", "4:S1", 8192, 8192));
    List<Plan> plans = withBucketBytes(1, List.of(plan));
    long pieceBytes = 8192L * 8192 / 16 * 4 / 4096;
    assertThat(Plan.stagingBytes(plans, 0)).isEqualTo(2 * 4 * pieceBytes);
    int[] steps = new int[1];
    Steps counter =
        new Steps() {
          @Override
          public void stage(
              int phase, int dtype, long[] shape, long offset, List<Integer> readers) {
            steps[0]++;
          }

          @Override
          public void write(
              int phase,
              Place target,
              long[] length,
              List<Integer> ranks,
              Place source,
              int wire,
              int op) {
            steps[0]++;
          }
        };
    Schedule.of(plans, 0, counter);
    assertThat(steps[0]).isEqualTo(2 * 4 * 4096);
  }

  @Test
  void moreTurnsThanATransferHasAreRefusedBeforeTheyAreMade() {
    List<Plan> plans =
        withBucketBytes(
            1,
            Collections.nCopies(
                260, inMode(TransferMode.STAGED, plan("1:R", "1:R", 1L << 40))));
    refused(
        InvalidArgumentException.class,
        "with bucketBytes of 1, 260 tensors may need 1048576 phases or more",
        () -> Plan.stagingBytes(plans, 1));
    try (LocalGroup group = LocalGroup.of(2)) {
      group.run(
          communicator -> {
            TransferBuilder builder =
                TransferBuilder.of(communicator).defaultMode(TransferMode.STAGED)
                    .defaultBucketBytes(1);
            Layout from = Layout.parse("1:R");
            Layout to = Layout.parse("1@1:R");
            long[] shape = {4096};
            Tensor source = communicator.rank() == 0 ? Tensor.allocate(DType.U8, shape) : null;
            for (int i = 0; i < 260; i++) {
              Tensor target = communicator.rank() == 1 ? Tensor.allocate(DType.U8, shape) : null;
              builder.add("t" + i, shape, DType.U8, from, source, to, target);
            }
            refused(InvalidArgumentException.class, "260 tensors may need", builder::register);
          });
    }
  }

  @Test
  void fingerprintsTellPlansApart() {
    Plan plan = plan("2:S0", "2:S1", 8, 8);
    assertThat(plan.fingerprint()).isEqualTo(plan("2:S0", "2@2:S1", 8, 8).fingerprint());
    assertThat(plan.fingerprint()).isEqualTo(plan("a=2:S0", "2:S1", 8, 8).fingerprint());
    assertThat(
            List.of(
                plan("2:S0", "2@3:S1", 8, 8).fingerprint(),
                plan("2:S1", "2:S1", 8, 8).fingerprint(),
                plan("2@[1,0]:S0", "2@2:S1", 8, 8).fingerprint(),
                plan("2:S0", "2:S1", 8, 9).fingerprint(),
                plan("2:S0", "2:S1", 8, 8, 1).fingerprint(),
                withBucketBytes(1, List.of(plan)).get(0).fingerprint(),
                inMode(TransferMode.STAGED, plan).fingerprint(),
                inMode(TransferMode.GATHER_BROADCAST, plan).fingerprint(),
                padded(8, 10, 8, 8).fingerprint(),
                padded(10, 8, 8, 8).fingerprint(),
                padded(8, 8, 10, 8).fingerprint(),
                on(Hosts.ofEach(2), plan).fingerprint(),
                on(Hosts.of(0, 0, 1, 1), plan).fingerprint(),
                on(Hosts.of(0, 1, 0, 1), plan).fingerprint(),
                on(Hosts.of(0, 1, 0, 1, 0), plan).fingerprint(),
                Plan.of(plan.from(), plan.to(), plan.shape(), DType.I32).fingerprint()))
        .doesNotContain(plan.fingerprint())
        .doesNotHaveDuplicates();
    assertThat(padded(8, 8, 8, 8).fingerprint()).isEqualTo(plan.fingerprint());
    assertThat(on(Hosts.of(7, 7, 7, 7), plan).fingerprint()).isEqualTo(plan.fingerprint());
    assertThat(on(Hosts.of(5, 5, 2, 2), plan).fingerprint())
        .isEqualTo(on(Hosts.of(0, 0, 1, 1), plan).fingerprint());
  }

  private static Plan on(Hosts hosts, Plan plan) {
    return with(plan.options().withHosts(hosts), plan);
  }

  private static Plan padded(long fromRows, long fromColumns, long toRows, long toColumns) {
    return Plan.of(
        TensorSpec.of("w", DType.F32, Layout.parse("2:S0"), 8, 8).padded(fromRows, fromColumns),
        TensorSpec.of("w", DType.F32, Layout.parse("2@2:S1"), 8, 8).padded(toRows, toColumns),
        DType.F32,
        PlanOptions.defaults());
  }

  @Test
  void cutsFollowThePaddedShape() {
    assertThat(routes(padded(8, 8, 8, 12)))
        .containsExactly(
            "P2P 0 -> [2] [0,4) x [0,6)",
            "P2P 0 -> [3] [0,4) x [6,8)",
            "P2P 1 -> [2] [4,8) x [0,6)",
            "P2P 1 -> [3] [4,8) x [6,8)");
    assertThat(routes(padded(16, 8, 8, 8)))
        .containsExactly("P2P 0 -> [2] [0,8) x [0,4)", "P2P 0 -> [3] [0,8) x [4,8)");
    TensorSpec spec = TensorSpec.of("w", DType.F32, Layout.parse("2:S0"), 3);
    refused(
        InvalidArgumentException.class,
        "tensor 'v' has shape [4]",
        () ->
            Plan.of(
                spec,
                TensorSpec.of("v", DType.F32, Layout.parse("2:R"), 4),
                DType.F32,
                PlanOptions.defaults()));
  }

  @Test
  void theFingerprintIsTheSameInEveryVirtualMachine() {
    // Computed outside Java from the definition in Fingerprint and Plan.
    assertThat(plan("2:S0", "2:S1", 8, 8).fingerprint()).isEqualTo(107584873678698944L);
  }

  @Test
  void whatCannotBePlannedIsRefused() {
    refused(InvalidArgumentException.class, "holds Partial", () -> plan("2:R", "2:P", 4));
    refused(InvalidArgumentException.class, "shards dimension 1", () -> plan("2:R", "2:S1", 4));
    refused(InvalidArgumentException.class, "extent -4", () -> plan("2:R", "2:R", -4));
    refused(
        InvalidArgumentException.class, "overflow", () -> plan("2:R", "2:R", 1L << 40, 1L << 40));
    PlanOptions options = PlanOptions.defaults();
    refused(InvalidArgumentException.class, "bucketBytes", () -> options.withBucketBytes(0));
    refused(InvalidArgumentException.class, "turn", () -> options.withTurn(-1));
    refused(InvalidArgumentException.class, "ranksPerHost", () -> Hosts.ofEach(0));
    Layout from = Layout.parse("2:P:avg");
    Layout to = Layout.parse("2@2:S0");
    long[] shape = {4};
    refused(
        UnsupportedException.class,
        "i32 can't be reduced by avg",
        () -> Plan.of(from, to, shape, DType.I32));
    refused(
        UnsupportedException.class,
        "f32 does not cast to i32",
        () -> Plan.of(to, to, shape, DType.F32, DType.F32, DType.I32, options));
    refused(
        UnsupportedException.class,
        "inside a byte",
        () -> Plan.of(to, to, new long[] {6}, DType.F4));
    assertThat(Plan.of(to, to, new long[] {8}, DType.F4).totals().localBytes()).isEqualTo(4);
    // A third of these elements does not fill a whole number of bytes; what each replica sends does.
    Plan shared =
        Plan.of(
            Layout.parse("3:R"), Layout.parse("1@3:R"), new long[] {2, 9_000_002}, DType.F4);
    assertThat(shared.traffic().links()).hasSize(3);
    assertThat(shared.totals().sentBytes()).isEqualTo(9_000_002);
  }

  @Test
  void theDefaultWireAddsNoRounding() {
    assertThat(Plan.defaultWire(DType.F32, DType.BF16)).isEqualTo(DType.BF16);
    assertThat(Plan.defaultWire(DType.BF16, DType.F32)).isEqualTo(DType.BF16);
    assertThat(Plan.defaultWire(DType.F16, DType.BF16)).isEqualTo(DType.F16);
  }

  /** Extents near the range of a long, where shares are counted in coarser units. */
  @RandomSeeds(300)
  void hugeShapesCoverEveryTargetToo(long seed) {
    Random random = new Random(seed);
    RandomLayouts layouts = new RandomLayouts(seed, 64);
    long[] shape = {1 + random.nextLong(1L << 30), 1 + random.nextLong(1L << 30)};
    Layout from = layouts.layout(true, shape);
    Layout to = layouts.layout(false, shape);
    Plan plan = Plan.of(from, to, shape, DType.F32);
    List<Route> all = plan.routes();
    for (int rank : to.mesh().ranks()) {
      long arrived = 0;
      for (Chunk chunk : plan.chunksFor(rank)) {
        assertThat(all).contains(chunk.route());
        arrived += chunk.isTarget() ? chunk.route().numel() : 0;
      }
      assertThat(arrived).isEqualTo(to.localRegion(shape, rank).numel());
    }
  }

  private static Plan plan(String from, String to, long... shape) {
    Layout source = Layout.parse(from);
    return Plan.of(source, Layout.parseTarget(to, source), shape, DType.F32);
  }

  private static List<String> routes(String from, String to, long... shape) {
    return routes(plan(from, to, shape));
  }

  private static void refused(
      Class<? extends WindlassException> type, String message, Runnable call) {
    assertThatThrownBy(call::run).isInstanceOf(type).hasMessageContaining(message);
  }
}
