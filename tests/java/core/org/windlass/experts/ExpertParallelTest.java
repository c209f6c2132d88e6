// SPDX-License-Identifier: Apache-2.0
package org.windlass.experts;

import static org.assertj.core.api.Assertions.assertThat;

import java.util.Arrays;
import java.util.List;
import java.util.Random;
import java.util.stream.Stream;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.Arguments;
import org.junit.jupiter.params.provider.MethodSource;
import org.windlass.Communicator;
import org.windlass.DType;
import org.windlass.DistributedTensor;
import org.windlass.Tensor;
import org.windlass.testing.Ranks;
import org.windlass.testing.ReferenceNumbers;

/** Dispatch and combine in every launch against a slow reference, bit for bit. */
class ExpertParallelTest {
  private static final int[] RANKS = {1, 2, 3, 4, 8};
  private static final DType[] DTYPES = {
    DType.BF16, DType.F32, DType.F16, DType.F64, DType.F8E4M3, DType.F8E5M2
  };

  static Stream<Arguments> cases() {
    return Ranks.with(RANKS, (Object[]) ExpertCase.Router.values());
  }

  @ParameterizedTest
  @MethodSource("cases")
  void rowsAndSumsAreTheReferences(Ranks ranks, ExpertCase.Router router) {
    long seed = Long.getLong("windlass.seed", new Random().nextInt());
    int rounds = ranks.rounds(20);
    ranks.run(
        comm -> {
          for (int round = 0; round < rounds; round++) {
            check(comm, randomCase(comm.size(), router, seed + round, DTYPES, true));
          }
        });
  }

  /** Of one of the dtypes, now and then quantised if that is to be. */
  static ExpertCase randomCase(
      int ranks, ExpertCase.Router router, long seed, DType[] dtypes, boolean quantises) {
    Random random = new Random(seed);
    int experts = ranks * (1 + random.nextInt(5));
    int topK = 1 + random.nextInt(Math.min(experts, 8));
    long[] hidden = {1, 7, 64, 128, 130, 513, 1100};
    DType dtype = dtypes[random.nextInt(dtypes.length)];
    boolean quantised =
        quantises && dtype.bytes() > 1 && dtype != DType.F64 && random.nextInt(3) == 0;
    ExpertOptions options =
        ExpertOptions.of(
                experts, topK, hidden[random.nextInt(hidden.length)], 1 + random.nextInt(40), dtype)
            .withAlignment(List.of(1, 1, 4, 16).get(random.nextInt(4)))
            .withQuantised(quantised);
    return new ExpertCase(options, ranks, router, seed);
  }

  /** By a routing that is used twice, and tensors here and there. */
  static void check(Communicator comm, ExpertCase of) {
    ExpertOptions options = of.options();
    int rank = comm.rank();
    int count = of.tokens(rank);
    boolean inWindow = of.seed() % 2 == 0;
    DType answers = options.quantised() ? DType.BF16 : options.dtype();
    try (var experts = ExpertParallel.open(comm, options);
        var routing = experts.routing();
        var window =
            comm.window(
                128
                    + options.tokens() * options.hidden() * options.dtype().bytes()
                    + experts.options().rows() * options.hidden() * answers.bytes());
        var plain = Tensor.allocate(options.dtype(), count, options.hidden());
        var ids = Tensor.allocate(inWindow ? DType.I32 : DType.I64, count, options.topK());
        var weights = Tensor.allocate(DType.F32, count, options.topK());
        var sums = Tensor.allocate(answers, count, options.hidden())) {
      Tensor tokens =
          inWindow
              ? window
                  .tensor(options.dtype(), options.tokens(), options.hidden())
                  .narrow(0, 0, count)
              : plain;
      DistributedTensor outputs =
          options.quantised() || !inWindow
              ? window.tensor(answers, experts.options().rows(), options.hidden())
              : experts.rows();
      ExpertCase.write(ids, Arrays.stream(of.ids(rank)).asLongStream().toArray());
      weights.copyFrom(of.weights(rank));
      for (int round = 0; round < 2; round++) {
        ExpertCase.write(tokens, of.values(rank, round));
        if (round == 0) {
          experts.dispatch(routing, tokens, ids, weights);
        } else {
          experts.dispatch(routing, tokens);
        }
        checkRows(of, experts, routing, rank, round);
        answer(of, outputs, routing, rank);
        sums.fill(Double.NaN);
        experts.combine(routing, outputs, sums);
        checkSums(of, sums, rank);
      }
    }
  }

  private static void checkRows(
      ExpertCase of, ExpertParallel experts, ExpertRouting routing, int rank, int round) {
    ExpertOptions options = of.options();
    int hidden = (int) options.hidden();
    List<List<ExpertCase.Row>> expected = of.rows(rank);
    long[][] values = new long[of.ranks()][];
    float[][] weights = new float[of.ranks()][];
    for (int from = 0; from < of.ranks(); from++) {
      values[from] = of.values(from, round);
      weights[from] = of.weights(from);
    }
    int start = 0;
    for (int expert = 0; expert < experts.localExperts(); expert++) {
      start = Math.toIntExact(roundUp(start, options.alignment()));
      List<ExpertCase.Row> rows = expected.get(expert);
      assertThat(routing.start(expert)).as("start of %d in %s", expert, of).isEqualTo(start);
      assertThat(routing.count(expert)).as("rows of %d in %s", expert, of).isEqualTo(rows.size());
      long[] found = ExpertCase.read(routing.rows(expert));
      for (int i = 0; i < rows.size(); i++) {
        ExpertCase.Row row = rows.get(i);
        assertThat(source(experts, start + i)).as("source in %s", of).isEqualTo(row);
        assertThat((float) experts.weights().getDouble(start + i))
            .isEqualTo(weights[row.rank()][row.token() * options.topK() + row.slot()]);
        int first = row.token() * hidden;
        float scale = 0;
        for (int h = 0; h < hidden; h++) {
          long bits = values[row.rank()][first + h];
          if (options.quantised()) {
            if (h % 128 == 0) {
              int end = first + Math.min(hidden, h + 128);
              scale = ExpertCase.scale(options.dtype(), values[row.rank()], first + h, end);
              assertThat((float) experts.scales().getDouble(start + i, h / 128)).isEqualTo(scale);
            }
            bits = ExpertCase.quantised(options.dtype(), bits, scale);
          }
          if (found[i * hidden + h] != bits) {
            assertThat(found[i * hidden + h]).as("%s of %s in %s", h, row, of).isEqualTo(bits);
          }
        }
      }
      start += rows.size();
      for (; start % options.alignment() != 0; start++) {
        assertThat(source(experts, start)).isEqualTo(new ExpertCase.Row(-1, -1, -1));
        assertThat(experts.weights().getDouble(start)).isZero();
      }
    }
  }

  private static ExpertCase.Row source(ExpertParallel experts, int row) {
    return new ExpertCase.Row(
        (int) experts.sources().getLong(row, 0),
        (int) experts.sources().getLong(row, 1),
        (int) experts.sources().getLong(row, 2));
  }

  /** Writes what this rank's experts make of their rows. */
  private static void answer(
      ExpertCase of, DistributedTensor outputs, ExpertRouting routing, int rank) {
    int hidden = (int) of.options().hidden();
    List<List<ExpertCase.Row>> rows = of.rows(rank);
    for (int expert = 0; expert < rows.size(); expert++) {
      long[] bits = new long[rows.get(expert).size() * hidden];
      for (int i = 0; i < bits.length; i++) {
        bits[i] = of.answer(outputs.dtype(), rows.get(expert).get(i / hidden), i % hidden);
      }
      ExpertCase.write(
          outputs.narrow(0, routing.start(expert), rows.get(expert).size()), bits);
    }
  }

  private static void checkSums(ExpertCase of, Tensor sums, int rank) {
    int hidden = (int) of.options().hidden();
    int topK = of.options().topK();
    int[] ids = of.ids(rank);
    float[] all = of.weights(rank);
    long[] found = ExpertCase.read(sums);
    for (int token = 0; token < of.tokens(rank); token++) {
      for (int h = 0; h < hidden; h++) {
        int count = 0;
        float[] weights = new float[topK];
        long[] terms = new long[topK];
        for (int slot = 0; slot < topK; slot++) {
          if (ids[token * topK + slot] >= 0) {
            weights[count] = all[token * topK + slot];
            terms[count++] = of.answer(sums.dtype(), new ExpertCase.Row(rank, token, slot), h);
          }
        }
        long expected =
            ExpertCase.combined(
                sums.dtype(), Arrays.copyOf(weights, count), Arrays.copyOf(terms, count));
        if (found[token * hidden + h] != expected) {
          assertThat(found[token * hidden + h])
              .as("element %d of token %d of rank %d in %s", h, token, rank, of)
              .isEqualTo(expected);
        }
        if (sums.dtype().bytes() > 1) {
          checkNear(sums.dtype(), expected, weights, terms, count);
        }
      }
    }
  }

  /** Within 2^-6 of what f64 makes of it, by the size of the terms. */
  private static void checkNear(
      DType dtype, long found, float[] weights, long[] terms, int count) {
    double sum = 0;
    double size = 0;
    for (int i = 0; i < count; i++) {
      double term = weights[i] * ReferenceNumbers.decode(dtype, terms[i]);
      sum += term;
      size += Math.abs(term);
    }
    double value = ReferenceNumbers.decode(dtype, found);
    if (Double.isFinite(size) && Double.isFinite(value)) {
      assertThat(Math.abs(value - sum)).isLessThanOrEqualTo(size / 64);
    }
  }

  private static long roundUp(long value, long unit) {
    return (value + unit - 1) / unit * unit;
  }
}
