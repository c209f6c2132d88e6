// SPDX-License-Identifier: Apache-2.0
package org.windlass.transfer;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.util.Arrays;
import java.util.List;
import java.util.function.LongFunction;
import java.util.function.LongUnaryOperator;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.Arguments;
import org.junit.jupiter.params.provider.MethodSource;
import org.windlass.DType;
import org.windlass.LocalGroup;
import org.windlass.Tensor;
import org.windlass.error.InvalidArgumentException;
import org.windlass.layout.Layout;
import org.windlass.layout.TensorSpec;
import org.windlass.testing.DistributionReference;
import org.windlass.testing.OnRanks;
import org.windlass.testing.Ranks;

/**
 * The views and layouts that models need, moved for real between a trainer and a fleet. Every bit
 * of a buffer is compared with what plain arithmetic on rows says, never through the view that
 * wrote it.
 */
class ViewsTest {
  private static final long HEAD = 4;
  private static final long HIDDEN = 6;
  private static final short DIRT = 0x7fc1;

  /** The bits of an element: every pattern, NaNs among them. */
  private static short bits(String tensor, long element) {
    long z = (tensor.hashCode() * 0x9e3779b97f4a7c15L) + element * 0xd1b54a32d192ed03L;
    z = (z ^ z >>> 32) * 0xbf58476d1ce4e5b9L;
    return (short) (z >>> 40);
  }

  private static TensorSpec spec(String name, String layout, long... shape) {
    return TensorSpec.of(name, DType.BF16, Layout.parse(layout), shape);
  }

  /** What a rank holds of a tensor, padding dirty; null outside the mesh. */
  private static Tensor source(TensorSpec spec, int rank) {
    if (!spec.layout().mesh().contains(rank)) {
      return null;
    }
    Tensor tensor = dirty(spec.localShape(rank));
    short[] values = new short[(int) tensor.numel()];
    tensor.copyTo(values);
    List<List<Long>> held =
        DistributionReference.held(spec.layout(), rank, spec.paddedExtents());
    for (int i = 0; i < values.length; i++) {
      long element = 0;
      boolean real = true;
      int place = values.length;
      for (int d = 0; d < held.size(); d++) {
        place /= held.get(d).size();
        long index = held.get(d).get(i / place % held.get(d).size());
        real &= index < spec.shape().get(d);
        element = element * spec.shape().get(d) + index;
      }
      values[i] = real ? bits(spec.name(), element) : values[i];
    }
    return tensor.copyFrom(values);
  }

  private static Tensor dirty(long... shape) {
    Tensor tensor = Tensor.allocate(DType.BF16, shape);
    short[] values = new short[(int) tensor.numel()];
    Arrays.fill(values, DIRT);
    return tensor.copyFrom(values);
  }

  /** Runs twice, so that what a first run leaves behind does not pass for the second's. */
  private static void move(TransferBuilder builder, Runnable between) {
    try (Transfer transfer = builder.register()) {
      transfer.run();
      between.run();
      transfer.run();
    }
  }

  private static void move(TransferBuilder builder) {
    move(builder, () -> {});
  }

  /**
   * Compares all of a contiguous buffer, row by row.
   *
   * @param name the tensor that a row of the buffer belongs to; null for padding
   * @param row the row of that tensor
   */
  private static void check(
      Tensor buffer, long columns, LongFunction<String> name, LongUnaryOperator row) {
    short[] found = new short[(int) buffer.numel()];
    buffer.copyTo(found);
    for (int i = 0; i < found.length; i++) {
      String tensor = name.apply(i / columns);
      long element = tensor == null ? 0 : row.applyAsLong(i / columns) * columns + i % columns;
      short expected = tensor == null ? 0 : bits(tensor, element);
      if (found[i] != expected) {
        throw new AssertionError(
            String.format(
                "row %d of %s, column %d: 0x%04x, expected 0x%04x of %s",
                i / columns, buffer, i % columns, found[i] & 0xffff, expected & 0xffff, tensor));
      }
    }
  }

  /** Eight query and four KV heads over three ranks: 3, 3, 2 and 2, 2, none. */
  @OnRanks(7)
  void fusedQkvIsThreeNarrowViews(Ranks ranks) {
    long[][] heads = {{3, 3, 2}, {2, 2, 0}, {2, 2, 0}};
    String[] names = {"q", "k", "v"};
    long[] rows = {8 * HEAD, 4 * HEAD, 4 * HEAD};
    ranks.run(
        comm -> {
          int place = comm.rank() - 4;
          boolean infers = place >= 0;
          long[] counts = new long[3];
          for (int i = 0; i < 3 && infers; i++) {
            counts[i] = heads[i][place] * HEAD;
          }
          Tensor qkv = dirty(counts[0] + counts[1] + counts[2], HIDDEN);
          TransferBuilder builder = TransferBuilder.of(comm);
          long at = 0;
          for (int i = 0; i < 3; i++) {
            TensorSpec from = spec(names[i], "2x2:R,S0*4", rows[i], HIDDEN);
            builder.add(
                from,
                source(from, comm.rank()),
                spec(names[i], "3@4:S0*4", rows[i], HIDDEN),
                infers ? qkv.narrow(0, at, counts[i]) : null);
            at += counts[i];
          }
          move(builder);
          long k = counts[0];
          long v = counts[0] + counts[1];
          check(
              qkv,
              HIDDEN,
              row -> row < k ? "q" : row < v ? "k" : "v",
              row ->
                  row < k
                      ? place * 3 * HEAD + row
                      : place * 2 * HEAD + (row < v ? row - k : row - v));
        });
  }

  /** Gate and up side by side in columns, one transposed on the trainer. */
  @OnRanks(5)
  void fusedGateAndUpMayBeColumns(Ranks ranks) {
    ranks.run(
        comm -> {
          boolean infers = comm.rank() >= 3;
          Tensor fused = dirty(infers ? 12 : 0, 5);
          TensorSpec gate = spec("gate", "3:S1", 12, 5);
          TensorSpec up = spec("up", "3:S1", 12, 5);
          Tensor upView = null;
          Tensor gateView = null;
          if (infers) {
            // 5 columns over 2 ranks: 3 and 2.
            long columns = comm.rank() == 3 ? 3 : 2;
            fused = dirty(12, 2 * columns);
            gateView = fused.narrow(1, 0, columns);
            upView = fused.narrow(1, columns, columns);
          }
          Tensor held = source(gate, comm.rank());
          Tensor transposed = null;
          if (held != null) {
            transposed = Tensor.allocate(DType.BF16, held.shape()[1], 12).transpose(0, 1);
            transposed.copyFrom(held);
          }
          move(
              TransferBuilder.of(comm)
                  .add(gate, transposed, spec("gate", "2@3:S1", 12, 5), gateView)
                  .add(up, source(up, comm.rank()), spec("up", "2@3:S1", 12, 5), upView));
          if (infers) {
            long columns = fused.shape()[1] / 2;
            long first = comm.rank() == 3 ? 0 : 3;
            check(
                fused,
                1,
                at -> at % (2 * columns) < columns ? "gate" : "up",
                at -> at / (2 * columns) * 5 + first + at % columns);
          }
        });
  }

  static Stream<Arguments> interleaved() {
    return Ranks.with(new int[] {5}, false, true);
  }

  /** Groups of two query heads, a key and a value, over three ranks: 2, 2 and 1 groups. */
  @ParameterizedTest
  @MethodSource("interleaved")
  void interleavedQkvIsSplitThenNarrowed(Ranks ranks, boolean interleavedAtSource) {
    long groups = 5;
    String[] names = {"q", "k", "v"};
    long[] perGroup = {2, 1, 1};
    ranks.run(
        comm -> {
          int place = comm.rank() - 2;
          boolean infers = place >= 0;
          String fused = interleavedAtSource ? "2:S0" : "3@2:S0";
          String apart = interleavedAtSource ? "3@2:S0" : "2:S0";
          int rank = comm.rank();
          Layout fusedLayout = Layout.parse(fused);
          boolean holdsFused = fusedLayout.mesh().contains(rank);
          long held = holdsFused ? fusedLayout.localShape(new long[] {groups}, rank)[0] : 0;
          long firstGroup = interleavedAtSource ? 3L * rank : 2L * place;
          Tensor qkv = dirty(held * 4 * HEAD, HIDDEN);
          if (interleavedAtSource && holdsFused) {
            fillInterleaved(qkv, firstGroup, names, perGroup);
          }
          TransferBuilder builder = TransferBuilder.of(comm);
          Tensor[] others = new Tensor[3];
          long head = 0;
          for (int i = 0; i < 3; i++) {
            long[] shape = {groups, perGroup[i], HEAD, HIDDEN};
            Tensor view =
                holdsFused ? qkv.splitDim(0, held, 4, HEAD).narrow(1, head, perGroup[i]) : null;
            TensorSpec other = spec(names[i], apart, shape);
            if (interleavedAtSource) {
              others[i] = infers ? dirty(other.localShape(rank)) : null;
              builder.add(spec(names[i], fused, shape), view, other, others[i]);
            } else {
              builder.add(other, source(other, rank), spec(names[i], fused, shape), view);
            }
            head += perGroup[i];
          }
          move(builder);
          if (!interleavedAtSource && holdsFused) {
            Tensor expected = dirty(qkv.shape());
            fillInterleaved(expected, firstGroup, names, perGroup);
            assertThat(shorts(qkv)).isEqualTo(shorts(expected));
          }
          for (int i = 0; i < 3 && interleavedAtSource && infers; i++) {
            String name = names[i];
            long rowsOfAGroup = perGroup[i] * HEAD;
            check(others[i], HIDDEN, at -> name, at -> 2L * place * rowsOfAGroup + at);
          }
        });
  }

  private static short[] shorts(Tensor tensor) {
    short[] values = new short[(int) tensor.numel()];
    tensor.copyTo(values);
    return values;
  }

  private static void fillInterleaved(
      Tensor qkv, long firstGroup, String[] names, long[] perGroup) {
    short[] values = shorts(qkv);
    int at = 0;
    for (long group = firstGroup; at < values.length; group++) {
      for (int i = 0; i < names.length; i++) {
        long size = perGroup[i] * HEAD * HIDDEN;
        for (long e = 0; e < size; e++) {
          values[at++] = bits(names[i], group * size + e);
        }
      }
    }
    qkv.copyFrom(values);
  }

  /** Seven experts dealt out to three ranks, two whole and one cut; inference stacks them. */
  @OnRanks(5)
  void stackedExpertsAreSelected(Ranks ranks) {
    int experts = 7;
    ranks.run(
        comm -> {
          int place = comm.rank() - 3;
          boolean infers = place >= 0;
          long rows = infers ? (place == 0 ? 3 : 2) : 0;
          Tensor stack = dirty(experts, rows, HIDDEN);
          TransferBuilder builder = TransferBuilder.of(comm);
          for (int e = 0; e < experts; e++) {
            String from = e == 6 ? "3@[2,0,1]:S0" : "1@" + e % 3 + ":R";
            TensorSpec expert = spec("expert" + e, from, 5, HIDDEN);
            builder.add(
                expert,
                source(expert, comm.rank()),
                spec("expert" + e, "2@3:S0", 5, HIDDEN),
                infers ? stack.select(0, e) : null);
          }
          move(builder);
          if (infers) {
            check(stack, HIDDEN, at -> "expert" + at / rows, at -> 3L * place + at % rows);
          }
        });
  }

  /** Two KV heads under tensor parallelism of four: two ranks hold each. */
  @OnRanks(6)
  void kvHeadsAreReplicatedUnderWideTensorParallelism(Ranks ranks) {
    ranks.run(
        comm -> {
          int place = comm.rank() - 2;
          TensorSpec from = spec("k", "2:S0*4", 2 * HEAD, HIDDEN);
          TensorSpec to = spec("k", "kv=2xrep=2@2:S0,R", 2 * HEAD, HIDDEN);
          Tensor k = place >= 0 ? dirty(HEAD, HIDDEN) : null;
          move(TransferBuilder.of(comm).add(from, source(from, comm.rank()), to, k));
          if (place >= 0) {
            check(k, HIDDEN, at -> "k", at -> place / 2 * HEAD + at);
          }
        });
  }

  static Stream<Arguments> words() {
    return Ranks.with(new int[] {7}, 50L, 48L, 47L, 1L, 0L);
  }

  /**
   * 50 words, padded to 60 for three trainers and to 64 for four ranks, of which the last holds
   * padding alone once there are 48; columns are padded too.
   */
  @ParameterizedTest
  @MethodSource("words")
  void aPaddedVocabularyMovesItsWordsAndClearsTheRest(Ranks ranks, long words) {
    ranks.run(
        comm -> {
          int place = comm.rank() - 3;
          TensorSpec from = spec("embed", "3:S0", words, HIDDEN).padded(60, HIDDEN + 1);
          TensorSpec to = spec("embed", "4@3:S0", words, HIDDEN).padded(64, HIDDEN + 2);
          Tensor target = place >= 0 ? dirty(16, HIDDEN + 2) : null;
          TransferBuilder builder =
              TransferBuilder.of(comm).add(from, source(from, comm.rank()), to, target);
          move(
              builder,
              () -> {
                if (target != null) {
                  target.copyFrom(dirty(16, HIDDEN + 2));
                }
                comm.barrier();
              });
          if (place >= 0) {
            long width = HIDDEN + 2;
            check(
                target,
                1,
                at -> 16 * place + at / width < words && at % width < HIDDEN ? "embed" : null,
                at -> (16 * place + at / width) * HIDDEN + at % width);
          }
        });
  }

  @Test
  void paddingOfEveryDtypeIsCleared() {
    for (DType dtype : DType.values()) {
      if (dtype.code() >= 0) {
        TensorSpec spec = TensorSpec.of("w", dtype, Layout.parse("1:R"), 1).padded(3);
        try (LocalGroup group = LocalGroup.of(1)) {
          Tensor source = Tensor.allocate(dtype, 3);
          Tensor target = Tensor.allocate(dtype, 3);
          byte[] dirt = new byte[(int) target.bytes()];
          Arrays.fill(dirt, (byte) 1);
          target.asByteBuffer().put(dirt);
          move(TransferBuilder.of(group.communicator(0)).add(spec, source, spec, target));
          byte[] found = new byte[dirt.length];
          target.asByteBuffer().get(found);
          assertThat(found).as(dtype.toString()).containsOnly(0);
        }
      }
    }
  }

  @Test
  void aPaddedShapeThatIsNoneIsRefused() {
    TensorSpec spec = spec("embed", "2:S0", 8, 4);
    for (long[] padded : new long[][] {{7, 4}, {8}, {8, 4, 1}, {-1, 4}}) {
      assertThatThrownBy(() -> spec.padded(padded))
          .isInstanceOf(InvalidArgumentException.class)
          .hasMessageContaining("tensor 'embed': padded shape " + Arrays.toString(padded));
    }
    assertThatThrownBy(() -> spec.padded(1L << 40, 1L << 40)).hasMessageContaining("overflow");
    try (LocalGroup group = LocalGroup.of(2)) {
      TensorSpec padded = spec.padded(12, 4);
      assertThatThrownBy(
              () ->
                  TransferBuilder.of(group.communicator(0))
                      .add(padded, dirty(4, 4), spec("embed", "1:R", 8, 4), dirty(8, 4)))
          .isInstanceOf(InvalidArgumentException.class)
          .hasMessageContaining("[6, 4]");
    }
  }

  /** The first stage holds the input embedding, the last one the projection: one source. */
  @OnRanks(6)
  void tiedEmbeddingsFillTwoTargets(Ranks ranks) {
    ranks.run(
        comm -> {
          int rank = comm.rank();
          TensorSpec embed = spec("embed", "2:S0", 9, HIDDEN);
          TensorSpec input = spec("embed", "2@2:S0", 9, HIDDEN);
          TensorSpec head = spec("lm_head", "2@4:R", 9, HIDDEN);
          Tensor first = rank == 2 || rank == 3 ? dirty(rank == 2 ? 5 : 4, HIDDEN) : null;
          Tensor last = rank >= 4 ? dirty(9, HIDDEN) : null;
          Tensor source = source(embed, rank);
          move(TransferBuilder.of(comm).add(embed, source, input, first)
              .add(embed, source, head, last));
          if (first != null) {
            check(first, HIDDEN, at -> "embed", at -> 5L * (rank - 2) + at);
          }
          if (last != null) {
            check(last, HIDDEN, at -> "embed", at -> at);
          }
        });
  }

  /** Stages over some ranks only, in no order, onto two ranks that overlap the last stage. */
  @OnRanks(6)
  void pipelineStagesAreMeshesOverSomeRanks(Ranks ranks) {
    String[] stages = {"2@[3,1]:S0", "2@[0,4]:S1"};
    ranks.run(
        comm -> {
          int rank = comm.rank();
          boolean infers = rank >= 4;
          Tensor[] targets = new Tensor[4];
          TransferBuilder builder = TransferBuilder.of(comm);
          for (int layer = 0; layer < 4; layer++) {
            String name = "layers." + layer;
            TensorSpec from = spec(name, stages[layer / 2], 7, HIDDEN);
            targets[layer] = infers ? dirty(rank == 4 ? 4 : 3, HIDDEN) : null;
            builder.add(
                from, source(from, rank), spec(name, "2@4:S0", 7, HIDDEN), targets[layer]);
          }
          move(builder);
          for (int layer = 0; layer < 4 && infers; layer++) {
            String name = "layers." + layer;
            check(targets[layer], HIDDEN, at -> name, at -> 4L * (rank - 4) + at);
          }
        });
  }

  /** A scale for every 128 rows; the last block is short. Rows and scales arrive together. */
  @OnRanks(5)
  void blockScalesStayBesideTheirWeights(Ranks ranks) {
    long rows = 3 * 128 + 9;
    ranks.run(
        comm -> {
          int place = comm.rank() - 3;
          boolean infers = place >= 0;
          // Four blocks over three ranks: 2, 2, none; over two: 2 and 2.
          long held = !infers ? 0 : place == 0 ? 256 : rows - 256;
          TensorSpec weightFrom =
              TensorSpec.of("w", DType.F8E4M3, Layout.parse("3:S0*128"), rows, 4);
          TensorSpec weightTo =
              TensorSpec.of("w", DType.F8E4M3, Layout.parse("2@3:S0*128"), rows, 4);
          TensorSpec scaleFrom = spec("w_scale", "3:S0*1", 4, 1);
          TensorSpec scaleTo = spec("w_scale", "2@3:S0*1", 4, 1);
          Tensor weight = infers ? Tensor.allocate(DType.F8E4M3, held, 4) : null;
          Tensor scale = infers ? dirty(2, 1) : null;
          Tensor source = null;
          if (!infers) {
            source = Tensor.allocate(DType.F8E4M3, weightFrom.localShape(comm.rank()));
            byte[] values = new byte[(int) source.numel()];
            for (int i = 0; i < values.length; i++) {
              values[i] = (byte) bits("w", comm.rank() * 256 * 4 + i);
            }
            source.copyFrom(values);
          }
          move(
              TransferBuilder.of(comm)
                  .add(weightFrom, source, weightTo, weight)
                  .add(scaleFrom, source(scaleFrom, comm.rank()), scaleTo, scale));
          if (infers) {
            byte[] found = new byte[(int) weight.numel()];
            weight.copyTo(found);
            for (int i = 0; i < found.length; i++) {
              assertThat(found[i]).isEqualTo((byte) bits("w", place * 256 * 4 + i));
            }
            check(scale, 1, at -> "w_scale", at -> 2L * place + at);
            assertThat(weightTo.localRegion(comm.rank()).intervals(0).get(0).start() / 128)
                .isEqualTo(scaleTo.localRegion(comm.rank()).intervals(0).get(0).start());
          }
        });
  }

  /** Twelve tensor dimensions between two meshes of eight, in the opposite order of ranks. */
  @OnRanks(8)
  void manyDimensionsMove(Ranks ranks) {
    long[] shape = {2, 1, 3, 2, 1, 2, 1, 1, 2, 3, 1, 2};
    ranks.run(
        comm -> {
          TensorSpec from = spec("t", "2x1x2x1x1x2x1x1:S0,S1,S2,R,S4,S9,S3,R", shape);
          TensorSpec to =
              spec("t", "1x2x1x2x1x1x1x2@[7,6,5,4,3,2,1,0]:R,S11,S10,S8,S7,R,S5,S3", shape);
          Tensor target = dirty(to.localShape(comm.rank()));
          move(TransferBuilder.of(comm).add(from, source(from, comm.rank()), to, target));
          assertThat(shorts(target)).isEqualTo(shorts(source(to, comm.rank())));
        });
  }
}
