// SPDX-License-Identifier: Apache-2.0
package org.windlass.layout;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.windlass.layout.Placement.partial;
import static org.windlass.layout.Placement.replicate;
import static org.windlass.layout.Placement.shard;
import static org.windlass.layout.Placement.stridedShard;

import java.util.ArrayList;
import java.util.List;
import java.util.stream.IntStream;
import java.util.stream.Stream;
import org.assertj.core.api.ThrowableAssert.ThrowingCallable;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;
import org.windlass.DType;
import org.windlass.ReduceOp;
import org.windlass.error.InvalidArgumentException;
import org.windlass.plan.Plan;
import org.windlass.plan.PlanOptions;
import org.windlass.testing.RandomLayouts;
import org.windlass.testing.RandomSeeds;

class LayoutTest {
  @Test
  void stringsReadAsTheContractSays() {
    assertThat(Layout.parse("2x4:P,S0")).isEqualTo(DeviceMesh.of(2, 4).layout(partial(), shard(0)));
    assertThat(Layout.parse("dp=2xtp=4:R,S1"))
        .isEqualTo(DeviceMesh.of("dp", 2, "tp", 4).layout(replicate(), shard(1)));
    assertThat(Layout.parse("2x2@8:SS0/2,S0"))
        .isEqualTo(DeviceMesh.of(2, 2).at(8).layout(stridedShard(0, 2), shard(0)));
    assertThat(Layout.parse("4:S0*128")).isEqualTo(DeviceMesh.of(4).layout(shard(0, 128)));
    assertThat(Layout.parse("4@[0-1,6,4]:P:max"))
        .isEqualTo(DeviceMesh.of(4).ranks(0, 1, 6, 4).layout(partial(ReduceOp.MAX)));
    assertThat(Layout.parse("2xx=3xx2=1:R,R,R").mesh().name(1)).isEqualTo("x");
  }

  @ParameterizedTest
  @ValueSource(
      strings = {
        "2x4:P,S0",
        "dp=2xtp=4:R,S1",
        "2x2@8:SS0/2,S0",
        "4:S0*128",
        "4@[0-1,6,4]:P:avg",
        "3@[2,1,0]:R",
        "_a1=1:P:product"
      })
  void stringsRoundTrip(String text) {
    assertThat(Layout.parse(text)).hasToString(text);
  }

  @RandomSeeds(2000)
  void everyLayoutRoundTrips(long seed) {
    Layout layout = new RandomLayouts(seed, 64).layout(4, true);
    assertThat(Layout.parse(layout.toString())).isEqualTo(layout);
    assertThat(Layout.parseTarget(layout.qualified(), Layout.parse("8:R"))).isEqualTo(layout);
  }

  @Test
  void aTargetFollowsTheHighestRankOfItsSource() {
    Layout source = Layout.parse("3@[2,9,4]:S0");
    assertThat(Layout.parseTarget("2:R", source).mesh().ranks()).containsExactly(10, 11);
    assertThat(Layout.parseTarget("2@0:R", source).mesh().ranks()).containsExactly(0, 1);
    assertThat(Layout.parse("2@0:R")).hasToString("2:R");
    assertThat(Layout.parse("2:R").qualified()).isEqualTo("2@0:R");
  }

  @ParameterizedTest
  @CsvSource(
      delimiter = '|',
      quoteCharacter = '"',
      value = {
        "\"\"                | position 0: expected a mesh dimension's size (the string ends)",
        "x2:R                | position 2: expected '=' after mesh dimension name",
        "0:R                 | position 0: a mesh dimension of size 0",
        "2x0:R,R             | position 2: a mesh dimension of size 0",
        "2x:R                | position 2: expected a mesh dimension's size",
        "2                   | position 1: expected ':' before the placements (the string ends)",
        "2:                  | position 2: expected a placement",
        "2:R,                | position 4: expected a placement",
        "2:R R               | position 3: expected ',' or the end",
        "2: R                | position 2: expected a placement",
        "2x2:R               | position 4: 1 placements for 2 mesh dimensions",
        "2:R,R               | position 2: 2 placements for 1 mesh dimensions",
        "2:S                 | position 3: expected a tensor dimension",
        "2:S-1               | position 3: expected a tensor dimension",
        "2:S0*               | position 5: expected a unit",
        "2:S0*0              | position 2: a shard's unit is at least 1, not 0",
        "2:SS0               | position 5: expected '/' and the split",
        "2:SS0/0             | position 2: a strided shard's split is at least 1, not 0",
        "2:P:median          | position 4: 'median' is not a reduce operation",
        "2:P:                | position 4: '' is not a reduce operation",
        "2:Q                 | position 2: expected a placement",
        "2:S99999999999      | position 3: a tensor dimension is above 2147483647",
        "9999999:R           | position 0: a mesh dimension's size is above 1048576",
        "1024x1024x2:R,R,R   | position 0: mesh of sizes [1024, 1024, 2] has more than 1048576",
        "a=2xa=2:R,R         | position 0: two mesh dimensions are named 'a'",
        "2@:R                | position 2: expected a first rank or '['",
        "2@1048576:R         | position 2: a first rank or '[' is above 1048575",
        "2@1048575:R         | position 2: a mesh of 2 ranks from rank 1048575",
        "2@[0,0]:R           | position 2: rank 0 stands twice",
        "3@[0-1,1]:R         | position 2: rank 1 stands twice",
        "3@[0,1]:R           | position 2: mesh 3 has 3 places, but the list has 2 ranks",
        "2@[0-2]:R           | position 3: the list has more ranks than the mesh's 2 places",
        "2@[1-0]:R           | position 3: range 1-0 runs backwards",
        "2@[0,1:R            | position 6: expected ',' or ']' in the list of ranks",
        "2@[]:R              | position 3: expected a rank",
        "2@[0-]:R            | position 5: expected the last rank of a range",
        "2x2:P,P:max         | partial placements of one layout have one operation",
      })
  void errorsNameWhatAndWhere(String text, String message) {
    assertThatThrownBy(() -> Layout.parse(text))
        .isInstanceOf(InvalidArgumentException.class)
        .hasMessageContaining("layout '" + text + "'")
        .hasMessageContaining(message);
  }

  @Test
  void unevenPiecesFollowTorchChunk() {
    Layout layout = Layout.parse("4:S0");
    assertThat(rows(layout, 9)).containsExactly("[0,3)", "[3,6)", "[6,9)", "[0,0)");
    assertThat(rows(layout, 5)).containsExactly("[0,2)", "[2,4)", "[4,5)", "[0,0)");
    assertThat(rows(Layout.parse("4:S0*4"), 18))
        .containsExactly("[0,8)", "[8,16)", "[16,18)", "[0,0)");
    assertThat(rows(Layout.parse("2:S0*9223372036854775807"), 3)).containsExactly("[0,3)", "[0,0)");
  }

  @Test
  void shardsComposeInMeshOrder() {
    assertThat(rows(Layout.parse("2x2:S0,S0"), 6))
        .containsExactly("[0,2)", "[2,3)", "[3,5)", "[5,6)");
    assertThat(rows(Layout.parse("2x2:SS0/2,S0"), 8))
        .containsExactly("[0,2)", "[4,6)", "[2,4)", "[6,8)");
    assertThat(rows(Layout.parse("2:SS0/2"), 8)).containsExactly("[0,2)+[4,6)", "[2,4)+[6,8)");
    assertThat(rows(Layout.parse("2x2:SS0/3,SS0/3"), 12))
        .containsExactly(
            "[0,1)+[4,5)+[8,9)", "[1,2)+[5,6)+[9,10)", "[2,3)+[6,7)+[10,11)",
            "[3,4)+[7,8)+[11,12)");
    assertThat(rows(Layout.parse("dp=4xtp=2:SS0/2,S0"), 9))
        .containsExactly(
            "[0,2)", "[5,6)", "[2,4)", "[6,7)", "[4,5)", "[7,8)", "[0,0)", "[8,9)");
  }

  /**
   * Strided shards cut after the later shards whose sizes make their split. D, A, B and C are the
   * sizes of mesh dimensions, and AB is a product. The order names mesh dimensions.
   */
  @ParameterizedTest
  @CsvSource(
      delimiter = '|',
      quoteCharacter = '"',
      value = {
        "DxA:SS0/A,S0              | 1 0",
        "DxA:SS0/1,S0              | 0 1",
        "DxAxB:SS0/A,S0,R          | 1 0",
        "DxBxA:SS0/A,S1,S0         | 2 0",
        "DxAxB:SS0/B,R,S0          | 2 0",
        "DxAxB:R,SS0/B,S0          | 2 1",
        "DxAxB:S0,SS0/B,S0         | 0 2 1",
        "DxAxB:S0*2,SS0/B,S0       | 0 2 1",
        "DxAxB:SS0/AB,S0,S0        | 1 2 0",
        "DxAxB:SS0/A,S0,S0         | 1 0 2",
        "DxAxB:SS0/A,S0,S0*3       | 1 0 2",
        "DxAxB:SS0/B,SS0/B,S0      | 2 0 1",
        "DxAxB:SS0/AB,SS0/B,S0     | 2 1 0",
        "DxAxBxC:SS0/A,S0,SS0/C,S0 | 1 0 3 2",
      })
  void stridedShardsCutAfterTheShardsOfTheirSplit(String form, String order) {
    int[] cuts = Stream.of(order.split(" ")).mapToInt(Integer::parseInt).toArray();
    for (int[] n : sizes(form)) {
      Layout layout =
          Layout.parse(
              form.replace("AB", "" + n[1] * n[2])
                  .replace("D", "" + n[0])
                  .replace("A", "" + n[1])
                  .replace("B", "" + n[2])
                  .replace("C", "" + n[3]));
      for (int extent = 0; extent <= 40; extent++) {
        for (int rank : layout.mesh().ranks()) {
          Region region = layout.localRegion(new long[] {extent, 1}, rank);
          List<Integer> found =
              region.intervals(0).stream()
                  .flatMap(run -> IntStream.range((int) run.start(), (int) run.end()).boxed())
                  .toList();
          assertThat(found)
              .as("%s, extent %d, rank %d", layout, extent, rank)
              .isEqualTo(chunked(layout, cuts, extent, rank));
          if (extent % layout.mesh().size() == 0 && !form.contains("*")) {
            assertThat(found).isEqualTo(chunkedApart(layout, extent, rank));
          }
        }
      }
    }
  }

  /** Sizes for the letters of a form. */
  private static List<int[]> sizes(String form) {
    int[] most = {5, 5, 1, 1};
    if (form.contains("B")) {
      most = new int[] {4, 3, 3, form.contains("C") ? 3 : 1};
    }
    List<int[]> sizes = new ArrayList<>();
    for (int d = 1; d <= most[0]; d++) {
      for (int a = 1; a <= most[1]; a++) {
        for (int b = 1; b <= most[2]; b++) {
          for (int c = 1; c <= most[3]; c++) {
            sizes.add(new int[] {d, a, b, c});
          }
        }
      }
    }
    return sizes;
  }

  /** What a rank holds of dimension 0 if mesh dimensions cut it in an order. */
  private static List<Integer> chunked(Layout layout, int[] order, int extent, int rank) {
    int[] at = layout.mesh().coordinates(rank);
    List<Integer> held = IntStream.range(0, extent).boxed().toList();
    for (int m : order) {
      boolean hasUnit = layout.placements().get(m) instanceof Placement.Shard;
      int unit = hasUnit ? (int) ((Placement.Shard) layout.placements().get(m)).unit() : 1;
      held = chunk(held, layout.mesh().size(m), unit, at[m]);
    }
    return held;
  }

  /** What a rank holds if mesh dimensions cut in their order, each of {@code split} pieces. */
  private static List<Integer> chunkedApart(Layout layout, int extent, int rank) {
    int[] at = layout.mesh().coordinates(rank);
    List<Integer> held = IntStream.range(0, extent).boxed().toList();
    for (int m = 0; m < at.length; m++) {
      Placement placement = layout.placements().get(m);
      int split = placement instanceof Placement.StridedShard strided ? strided.split() : 1;
      if (split > 1 || placement.equals(shard(0))) {
        List<Integer> joined = new ArrayList<>();
        for (int piece = 0; piece < split; piece++) {
          joined.addAll(chunk(chunk(held, split, 1, piece), layout.mesh().size(m), 1, at[m]));
        }
        held = joined;
      } else if (placement.equals(stridedShard(0, 1))) {
        held = chunk(held, layout.mesh().size(m), 1, at[m]);
      }
    }
    return held;
  }

  /** One of the pieces into which {@code torch.chunk} cuts a list of whole units. */
  private static List<Integer> chunk(List<Integer> list, int pieces, int unit, int index) {
    List<List<Integer>> units = new ArrayList<>();
    for (int i = 0; i < list.size(); i += unit) {
      units.add(list.subList(i, Math.min(i + unit, list.size())));
    }
    int each = -Math.floorDiv(-units.size(), pieces);
    return units.stream().skip((long) index * each).limit(each).flatMap(List::stream).toList();
  }

  @ParameterizedTest
  @CsvSource(
      delimiter = '|',
      quoteCharacter = '"',
      value = {
        "2:SS0/3           | 0 | 6 12 18 24",
        "4:SS0/2           | 0 | 8 16 24",
        "2x3:SS0/2,S0      | 0 | 4 8 12 16 20 24",
        "2x2:SS0/2,S0*4    | 0 | 4 8 12 16 20 24",
        "2x2:S0,SS0/2      | 1 | 8 16 24",
        "2x2:S0*3,SS0/2    | 1 | 24",
        "2x2x2:SS0/8,S0,S0 | 0 | 16",
      })
  void otherStridedShardsNeedEqualPieces(String text, int meshDim, String extents) {
    List<Integer> equal = Stream.of(extents.split(" ")).map(Integer::valueOf).toList();
    Layout layout = Layout.parse(text);
    for (int extent = 0; extent <= 24; extent++) {
      long[] shape = {extent};
      TensorSpec spec = TensorSpec.of("w", DType.U8, layout, 0).padded(shape);
      if (extent == 0 || equal.contains(extent)) {
        assertThat(spec.localShape(0)).isEqualTo(layout.localShape(shape, 0));
        continue;
      }
      for (ThrowingCallable call :
          List.<ThrowingCallable>of(
              () -> layout.check("w", shape),
              () -> spec.localShape(0),
              () -> spec.localRegion(0),
              () -> Plan.of(spec, spec, DType.U8, PlanOptions.defaults()))) {
        assertThatThrownBy(call)
            .as("%s, extent %d", text, extent)
            .isInstanceOf(InvalidArgumentException.class)
            .hasMessage(
                "tensor 'w' has extent " + extent + " in dimension 0, which placement "
                    + layout.placements().get(meshDim) + " of mesh dimension " + meshDim + " in "
                    + layout + " cuts into unequal pieces; use S0, or as split the size of a later"
                    + " mesh dimension that has S0");
      }
    }
  }

  @Test
  void aShardOfAMissingDimensionNamesTensorAndPlacement() {
    Layout layout = Layout.parse("2x2:R,S1");
    assertThatThrownBy(() -> layout.check("norm.weight", 8))
        .isInstanceOf(InvalidArgumentException.class)
        .hasMessageContaining("norm.weight")
        .hasMessageContaining("placement S1 of mesh dimension 1");
    assertThat(layout.defaultedFor(1)).hasToString("2x2:R,R");
    assertThat(layout.defaultedFor(2)).isSameAs(layout);
    assertThatThrownBy(() -> layout.check("w", 8, -1)).hasMessageContaining("extent -1");
  }

  @Test
  void countsThatOverflowAreRefused() {
    Layout layout = Layout.parse("2:R");
    long big = 1L << 40;
    assertThatThrownBy(() -> TensorSpec.of("w", DType.U8, layout, big, big))
        .isInstanceOf(InvalidArgumentException.class)
        .hasMessageContaining("'w'")
        .hasMessageContaining("overflow");
    assertThatThrownBy(() -> TensorSpec.of("w", DType.F64, layout, 1L << 60))
        .hasMessageContaining("bytes");
    assertThat(TensorSpec.of("w", DType.F64, layout, big, big, 0).shape())
        .isEqualTo(List.of(big, big, 0L));
  }

  @Test
  void ranksOutsideTheMeshAreNamed() {
    assertThatThrownBy(() -> Layout.parse("2@4:S0").localShape(new long[] {8}, 3))
        .isInstanceOf(InvalidArgumentException.class)
        .hasMessageContaining("rank 3");
  }

  private static List<String> rows(Layout layout, long extent) {
    return layout.mesh().ranks().stream()
        .map(rank -> layout.localRegion(new long[] {extent}, rank).toString())
        .toList();
  }
}
